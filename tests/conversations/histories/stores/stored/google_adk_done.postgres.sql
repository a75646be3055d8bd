SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.adk_internal_metadata (
    key character varying(128) NOT NULL,
    value character varying(256) NOT NULL
);
CREATE TABLE public.app_states (
    app_name character varying(128) NOT NULL,
    state jsonb NOT NULL,
    update_time timestamp without time zone NOT NULL
);
CREATE TABLE public.events (
    id character varying(128) NOT NULL,
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    session_id character varying(128) NOT NULL,
    invocation_id character varying(256) NOT NULL,
    "timestamp" timestamp without time zone NOT NULL,
    event_data jsonb
);
CREATE TABLE public.sessions (
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    create_time timestamp without time zone NOT NULL,
    update_time timestamp without time zone NOT NULL
);
CREATE TABLE public.user_states (
    app_name character varying(128) NOT NULL,
    user_id character varying(128) NOT NULL,
    state jsonb NOT NULL,
    update_time timestamp without time zone NOT NULL
);
INSERT INTO public.adk_internal_metadata VALUES ('schema_version', '1');
INSERT INTO public.app_states VALUES ('shop', '{}', '2026-11-25 11:20:34.601166');
INSERT INTO public.events VALUES ('43f9c0b6-71d4-494a-bd89-6561025d604e', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:38.069396', '{"id": "43f9c0b6-71d4-494a-bd89-6561025d604e", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "user", "parts": [{"text": "Pay 5 and 6"}]}, "node_info": {"path": ""}, "timestamp": 1795605638.0693965, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078"}');
INSERT INTO public.events VALUES ('20ad8fa3-33f5-474c-8bf0-28be196a7d14', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:38.775475', '{"id": "20ad8fa3-33f5-474c-8bf0-28be196a7d14", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "model", "parts": [{"text": "Let me see."}, {"function_call": {"id": "c1", "args": {"amount": 5}, "name": "pay"}}, {"function_call": {"id": "c2", "args": {"amount": 6}, "name": "pay"}}, {"function_call": {"id": "c3", "args": {"path": "x"}, "name": "read"}}]}, "node_info": {"path": "clerk@1"}, "timestamp": 1795605638.7754748, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078", "long_running_tool_ids": []}');
INSERT INTO public.events VALUES ('da59c1c6-e33e-4179-b685-5d5b21f9430e', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:38.937346', '{"id": "da59c1c6-e33e-4179-b685-5d5b21f9430e", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"c1": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}, "c2": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}}, "content": {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "pay", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}, {"function_response": {"id": "c2", "name": "pay", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}, {"function_response": {"id": "c3", "name": "read", "response": {"result": "text of x"}}}]}, "node_info": {"path": "clerk@1"}, "timestamp": 1795605638.937346, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078"}');
INSERT INTO public.events VALUES ('0bea746d-8d20-423a-8f3a-c80216a1f701', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:38.938259', '{"id": "0bea746d-8d20-423a-8f3a-c80216a1f701", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "model", "parts": [{"function_call": {"id": "adk-3fe8d008-a0db-4acf-a125-7ffb558f0e2a", "args": {"toolConfirmation": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}, "originalFunctionCall": {"id": "c1", "args": {"amount": 5}, "name": "pay"}}, "name": "adk_request_confirmation"}}, {"function_call": {"id": "adk-a10c0ed9-c5f8-40da-bbc1-780802c7665d", "args": {"toolConfirmation": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}, "originalFunctionCall": {"id": "c2", "args": {"amount": 6}, "name": "pay"}}, "name": "adk_request_confirmation"}}]}, "node_info": {"path": "clerk@1"}, "timestamp": 1795605638.9382594, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078", "long_running_tool_ids": ["adk-3fe8d008-a0db-4acf-a125-7ffb558f0e2a", "adk-a10c0ed9-c5f8-40da-bbc1-780802c7665d"]}');
INSERT INTO public.events VALUES ('b65657a7-695f-4688-9067-7c706ca39679', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:39.577565', '{"id": "b65657a7-695f-4688-9067-7c706ca39679", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "user", "parts": [{"function_response": {"id": "adk-3fe8d008-a0db-4acf-a125-7ffb558f0e2a", "name": "adk_request_confirmation", "response": {"confirmed": true}}}, {"function_response": {"id": "adk-a10c0ed9-c5f8-40da-bbc1-780802c7665d", "name": "adk_request_confirmation", "response": {"confirmed": false}}}]}, "node_info": {"path": ""}, "timestamp": 1795605639.5775647, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078"}');
INSERT INTO public.events VALUES ('d85ef867-0257-4fea-aaa7-9cb1d95ae2c5', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:39.697987', '{"id": "d85ef867-0257-4fea-aaa7-9cb1d95ae2c5", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "pay", "response": {"result": "paid 5"}}}, {"function_response": {"id": "c2", "name": "pay", "response": {"error": "This tool call is rejected."}}}]}, "node_info": {"path": "clerk@1"}, "timestamp": 1795605639.697987, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078"}');
INSERT INTO public.events VALUES ('381bd85d-6950-4317-964e-69277b7b35f1', 'shop', 'user', 'thread-7', 'e-1c97549a-0ba5-41d9-9e67-428462b25078', '2026-11-25 11:20:39.77026', '{"id": "381bd85d-6950-4317-964e-69277b7b35f1", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "content": {"role": "model", "parts": [{"text": "Done."}]}, "node_info": {"path": "clerk@1"}, "timestamp": 1795605639.7702596, "invocation_id": "e-1c97549a-0ba5-41d9-9e67-428462b25078"}');
INSERT INTO public.sessions VALUES ('shop', 'user', 'thread-7', '{}', '2026-11-25 11:20:34.720954', '2026-11-25 11:20:39.77026');
INSERT INTO public.user_states VALUES ('shop', 'user', '{}', '2026-11-25 11:20:34.601166');
ALTER TABLE ONLY public.adk_internal_metadata
    ADD CONSTRAINT adk_internal_metadata_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.app_states
    ADD CONSTRAINT app_states_pkey PRIMARY KEY (app_name);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id, app_name, user_id, session_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (app_name, user_id, id);
ALTER TABLE ONLY public.user_states
    ADD CONSTRAINT user_states_pkey PRIMARY KEY (app_name, user_id);
CREATE INDEX idx_events_app_user_session_ts_id ON public.events USING btree (app_name, user_id, session_id, "timestamp" DESC, id DESC);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_app_name_user_id_session_id_fkey FOREIGN KEY (app_name, user_id, session_id) REFERENCES public.sessions(app_name, user_id, id) ON DELETE CASCADE;
