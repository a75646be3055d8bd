BEGIN TRANSACTION;
CREATE TABLE agno_schema_versions (
	table_name VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	updated_at VARCHAR, 
	PRIMARY KEY (table_name)
);
INSERT INTO "agno_schema_versions" VALUES('agno_sessions','2.3.0','2026-11-25T23:14:52.936501','2026-11-25T23:14:52.936501');
CREATE TABLE agno_sessions (
	session_id VARCHAR NOT NULL, 
	session_type VARCHAR NOT NULL, 
	agent_id VARCHAR, 
	team_id VARCHAR, 
	workflow_id VARCHAR, 
	user_id VARCHAR, 
	session_data JSON, 
	agent_data JSON, 
	team_data JSON, 
	workflow_data JSON, 
	metadata JSON, 
	runs JSON, 
	summary JSON, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT, 
	PRIMARY KEY (session_id)
);
INSERT INTO "agno_sessions" VALUES('2d5ee59a-e33b-4952-a679-bef6fea92ef1','agent','main',NULL,NULL,NULL,'"{\"session_state\": {}, \"session_metrics\": {\"input_tokens\": 0, \"output_tokens\": 0, \"total_tokens\": 0, \"cost\": null, \"audio_input_tokens\": 0, \"audio_output_tokens\": 0, \"audio_total_tokens\": 0, \"cache_read_tokens\": 0, \"cache_write_tokens\": 0, \"reasoning_tokens\": 0, \"timer\": null, \"time_to_first_token\": null, \"duration\": 0.03370484200058854, \"provider_metrics\": null, \"additional_metrics\": null}}"','"{\"name\": \"main\", \"agent_id\": \"main\", \"model\": {\"provider\": \"scripted\", \"name\": \"Scripted\", \"id\": \"scripted\"}}"',NULL,NULL,'null','"[{\"run_id\": \"cc42507a-216f-4791-a147-047c0db999ed\", \"agent_id\": \"main\", \"agent_name\": \"main\", \"session_id\": \"2d5ee59a-e33b-4952-a679-bef6fea92ef1\", \"content\": \"I have tools to execute, but I need confirmation.\", \"content_type\": \"str\", \"model\": \"scripted\", \"model_provider\": \"scripted\", \"created_at\": 1795648197, \"status\": \"PAUSED\", \"metrics\": {\"duration\": 0.01685242100029427}, \"events\": [], \"messages\": [{\"id\": \"978c3286-433e-4a97-99b3-c20213efd7f1\", \"content\": \"Pay 100, 200 and 300\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"user\", \"created_at\": 1795648492}, {\"id\": \"4ac731d4-aced-4d7f-b58f-a433b8eefac5\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": \"pay\", \"arguments\": \"{\\\"amount\\\": 100}\"}}, {\"id\": \"c2\", \"type\": \"function\", \"function\": {\"name\": \"pay\", \"arguments\": \"{\\\"amount\\\": 200}\"}}], \"created_at\": 1795648492}, {\"id\": \"61ca76ba-617a-4171-98a9-fabaa310ab41\", \"content\": \"paid 10\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"tool\", \"tool_call_id\": \"c1\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 10, \"to\": \"Ann\"}, \"tool_call_error\": false, \"created_at\": 1795648493}, {\"id\": \"894996e4-c85e-49cb-a644-c5e95faa4895\", \"content\": \"paid 200\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"tool\", \"tool_call_id\": \"c2\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 200}, \"tool_call_error\": false, \"created_at\": 1795648493}, {\"id\": \"4b529f84-0b14-40e5-8428-700e13e518d2\", \"from_history\": false, \"stop_after_tool_call\": false, \"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c3\", \"type\": \"function\", \"function\": {\"name\": \"pay\", \"arguments\": \"{\\\"amount\\\": 300}\"}}], \"created_at\": 1795648493}], \"tools\": [{\"tool_call_id\": \"c1\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 10, \"to\": \"Ann\"}, \"tool_call_error\": false, \"result\": \"paid 10\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795648492, \"requires_confirmation\": false, \"confirmed\": true, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": [], \"answered\": null, \"external_execution_required\": null}, {\"tool_call_id\": \"c2\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 200}, \"tool_call_error\": false, \"result\": \"paid 200\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795648492, \"requires_confirmation\": false, \"confirmed\": true, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": [], \"answered\": null, \"external_execution_required\": null}, {\"tool_call_id\": \"c3\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 300}, \"tool_call_error\": null, \"result\": null, \"metrics\": null, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795648493, \"requires_confirmation\": true, \"confirmed\": null, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": null, \"answered\": null, \"external_execution_required\": null}], \"requirements\": [{\"id\": \"7fc2503a-3e7c-4510-8078-6e53c47c57f6\", \"created_at\": \"2026-11-25T23:14:52.869944+00:00\", \"confirmation\": true, \"tool_execution\": {\"tool_call_id\": \"c1\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 10, \"to\": \"Ann\"}, \"tool_call_error\": false, \"result\": \"paid 10\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795648492, \"requires_confirmation\": false, \"confirmed\": true, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": [], \"answered\": null, \"external_execution_required\": null}, \"user_input_schema\": []}, {\"id\": \"a4dfe1be-c662-48b3-bb11-56623414f7a2\", \"created_at\": \"2026-11-25T23:14:52.869969+00:00\", \"confirmation\": true, \"tool_execution\": {\"tool_call_id\": \"c2\", \"tool_name\": \"pay\", \"tool_args\": {\"amount\": 200}, \"tool_call_error\": false, \"result\": \"paid 200\", \"metrics\": {}, \"child_run_id\": null, \"stop_after_tool_call\": false, \"created_at\": 1795648492, \"requires_confirmation\": false, \"confirmed\": true, \"confirmation_note\": null, \"requires_user_input\": null, \"user_input_schema\": [], \"answered\": null, \"external_execution_required\": null}, \"user_input_schema\": []}], \"input\": {\"input_content\": \"Pay 100, 200 and 300\"}}]"','null',1795648492,1795648493);
CREATE INDEX idx_agno_sessions_created_at ON agno_sessions (created_at);
CREATE INDEX idx_agno_sessions_session_type ON agno_sessions (session_type);
CREATE INDEX idx_agno_schema_versions_created_at ON agno_schema_versions (created_at);
COMMIT;
