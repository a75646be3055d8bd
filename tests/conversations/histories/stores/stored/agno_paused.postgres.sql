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
CREATE SCHEMA ai;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE ai.agno_runs (
    run_id character varying NOT NULL,
    session_id character varying NOT NULL,
    run_type character varying NOT NULL,
    agent_id character varying,
    team_id character varying,
    workflow_id character varying,
    user_id character varying,
    parent_run_id character varying,
    status character varying,
    run_index bigint,
    run_data jsonb NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint
);
CREATE TABLE ai.agno_schema_versions (
    table_name character varying NOT NULL,
    version character varying NOT NULL,
    created_at character varying NOT NULL,
    updated_at character varying
);
CREATE TABLE ai.agno_sessions (
    session_id character varying NOT NULL,
    session_type character varying NOT NULL,
    agent_id character varying,
    team_id character varying,
    workflow_id character varying,
    user_id character varying,
    session_data jsonb,
    agent_data jsonb,
    team_data jsonb,
    workflow_data jsonb,
    metadata jsonb,
    summary jsonb,
    created_at bigint NOT NULL,
    updated_at bigint
);
INSERT INTO ai.agno_runs VALUES ('d2469826-01f6-4d87-a9f0-b440c65ed786', 'thread-7', 'agent', 'open-shannon-06e46297', NULL, NULL, NULL, NULL, 'PAUSED', 0, '{"input": {"input_content": "Pay 5 and 6"}, "model": "scripted", "tools": [{"result": null, "metrics": null, "answered": null, "confirmed": null, "tool_args": {"amount": 5}, "tool_name": "pay", "created_at": 1795605619, "approval_id": null, "child_run_id": null, "tool_call_id": "c1", "approval_type": null, "tool_call_error": null, "confirmation_note": null, "user_input_schema": null, "parent_tool_call_id": null, "requires_user_input": null, "stop_after_tool_call": false, "user_feedback_schema": null, "requires_confirmation": true, "external_execution_silent": null, "external_execution_required": null}, {"result": null, "metrics": null, "answered": null, "confirmed": null, "tool_args": {"amount": 6}, "tool_name": "pay", "created_at": 1795605619, "approval_id": null, "child_run_id": null, "tool_call_id": "c2", "approval_type": null, "tool_call_error": null, "confirmation_note": null, "user_input_schema": null, "parent_tool_call_id": null, "requires_user_input": null, "stop_after_tool_call": false, "user_feedback_schema": null, "requires_confirmation": true, "external_execution_silent": null, "external_execution_required": null}, {"result": "text of x", "metrics": {"duration": 0.004770362000272144, "end_time": 1795605619.7453709, "start_time": 1795605619.7406006}, "answered": null, "confirmed": null, "tool_args": {"path": "x"}, "tool_name": "read", "created_at": 1795605619, "approval_id": null, "child_run_id": null, "tool_call_id": "c3", "approval_type": null, "tool_call_error": false, "confirmation_note": null, "user_input_schema": null, "parent_tool_call_id": null, "requires_user_input": null, "stop_after_tool_call": false, "user_feedback_schema": null, "requires_confirmation": null, "external_execution_silent": null, "external_execution_required": null}], "run_id": "d2469826-01f6-4d87-a9f0-b440c65ed786", "status": "PAUSED", "content": "Let me see.", "metrics": {"duration": 0.07562932699875091, "time_to_first_token": 0.015859662998991553}, "agent_id": "open-shannon-06e46297", "messages": [{"id": "2997c472-bb64-406f-a807-aace1ae256f0", "role": "user", "content": "Pay 5 and 6", "created_at": 1795605619, "from_history": false, "stop_after_tool_call": false}, {"id": "69bd9df8-70fe-4335-9587-18695e35fa13", "role": "assistant", "content": "Let me see.", "metrics": {"time_to_first_token": 0.00003855000250041485}, "created_at": 1795605619, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{\"amount\": 5}"}}, {"id": "c2", "type": "function", "function": {"name": "pay", "arguments": "{\"amount\": 6}"}}, {"id": "c3", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"x\"}"}}], "from_history": false, "stop_after_tool_call": false}, {"id": "1a660476-48ef-473a-bf6a-4c18ef6bb7f4", "role": "tool", "content": "text of x", "tool_args": {"path": "x"}, "tool_name": "read", "created_at": 1795605619, "from_history": false, "tool_call_id": "c3", "tool_call_error": false, "stop_after_tool_call": false}], "created_at": 1795605619, "session_id": "thread-7", "content_type": "str", "requirements": [{"id": "abc704b6-2ef4-4287-8a75-a35439f02941", "created_at": "2026-11-25T11:20:19.740519+00:00", "tool_execution": {"result": null, "metrics": null, "answered": null, "confirmed": null, "tool_args": {"amount": 5}, "tool_name": "pay", "created_at": 1795605619, "approval_id": null, "child_run_id": null, "tool_call_id": "c1", "approval_type": null, "tool_call_error": null, "confirmation_note": null, "user_input_schema": null, "parent_tool_call_id": null, "requires_user_input": null, "stop_after_tool_call": false, "user_feedback_schema": null, "requires_confirmation": true, "external_execution_silent": null, "external_execution_required": null}}, {"id": "5e87835a-18ab-483e-84f6-fd01e84a7668", "created_at": "2026-11-25T11:20:19.740536+00:00", "tool_execution": {"result": null, "metrics": null, "answered": null, "confirmed": null, "tool_args": {"amount": 6}, "tool_name": "pay", "created_at": 1795605619, "approval_id": null, "child_run_id": null, "tool_call_id": "c2", "approval_type": null, "tool_call_error": null, "confirmation_note": null, "user_input_schema": null, "parent_tool_call_id": null, "requires_user_input": null, "stop_after_tool_call": false, "user_feedback_schema": null, "requires_confirmation": true, "external_execution_silent": null, "external_execution_required": null}}], "session_state": {}}', 1795605619, 1795605620);
INSERT INTO ai.agno_schema_versions VALUES ('agno_sessions', '3.0.0', '2026-11-25T11:20:20.181043', '2026-11-25T11:20:20.181043');
INSERT INTO ai.agno_schema_versions VALUES ('agno_runs', '3.0.0', '2026-11-25T11:20:20.587884', '2026-11-25T11:20:20.587884');
INSERT INTO ai.agno_sessions VALUES ('thread-7', 'agent', 'open-shannon-06e46297', NULL, NULL, NULL, '{"session_state": {}, "session_metrics": {}}', '{"model": {"id": "scripted"}, "agent_id": "open-shannon-06e46297"}', NULL, NULL, 'null', 'null', 1795605619, 1795605619);
ALTER TABLE ONLY ai.agno_runs
    ADD CONSTRAINT agno_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY ai.agno_schema_versions
    ADD CONSTRAINT agno_schema_versions_pkey PRIMARY KEY (table_name);
ALTER TABLE ONLY ai.agno_sessions
    ADD CONSTRAINT agno_sessions_pkey PRIMARY KEY (session_id);
CREATE INDEX idx_agno_runs_agent_id ON ai.agno_runs USING btree (agent_id);
CREATE INDEX idx_agno_runs_created_at ON ai.agno_runs USING btree (created_at);
CREATE INDEX idx_agno_runs_run_type ON ai.agno_runs USING btree (run_type);
CREATE INDEX idx_agno_runs_session_id ON ai.agno_runs USING btree (session_id);
CREATE INDEX idx_agno_runs_session_id_run_index ON ai.agno_runs USING btree (session_id, run_index);
CREATE INDEX idx_agno_runs_status ON ai.agno_runs USING btree (status);
CREATE INDEX idx_agno_runs_team_id ON ai.agno_runs USING btree (team_id);
CREATE INDEX idx_agno_runs_user_id ON ai.agno_runs USING btree (user_id);
CREATE INDEX idx_agno_runs_workflow_id ON ai.agno_runs USING btree (workflow_id);
CREATE INDEX idx_agno_schema_versions_created_at ON ai.agno_schema_versions USING btree (created_at);
CREATE INDEX idx_agno_sessions_created_at ON ai.agno_sessions USING btree (created_at);
CREATE INDEX idx_agno_sessions_session_type ON ai.agno_sessions USING btree (session_type);
ALTER TABLE ONLY ai.agno_runs
    ADD CONSTRAINT agno_runs_session_id_fkey FOREIGN KEY (session_id) REFERENCES ai.agno_sessions(session_id) ON DELETE CASCADE;
