/** Settings of Mastra for tests; imported before Mastra, which reads them when it is loaded. */

// Usage statistics would go to a server of PostHog.
process.env.MASTRA_TELEMETRY_DISABLED = "1";
