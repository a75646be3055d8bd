BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('shop','{}','2026-11-25 04:55:34');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('cbf26e1e-d6b5-4006-ab90-11df63d66983','shop','user','thread-7','e-dc413bf1-dbe7-4224-8143-25f5418882be','2026-11-25 04:55:37.360582','{"content": {"parts": [{"text": "Pay 5 and 6"}], "role": "user"}, "invocation_id": "e-dc413bf1-dbe7-4224-8143-25f5418882be", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "cbf26e1e-d6b5-4006-ab90-11df63d66983", "timestamp": 1795582537.360582}');
INSERT INTO "events" VALUES('57f2d152-870b-43a5-b1f5-4143f3740dbf','shop','user','thread-7','e-dc413bf1-dbe7-4224-8143-25f5418882be','2026-11-25 04:55:37.816407','{"content": {"parts": [{"text": "Let me see."}, {"function_call": {"id": "c1", "args": {"amount": 5}, "name": "pay"}}, {"function_call": {"id": "c2", "args": {"amount": 6}, "name": "pay"}}, {"function_call": {"id": "c3", "args": {"path": "x"}, "name": "read"}}], "role": "model"}, "invocation_id": "e-dc413bf1-dbe7-4224-8143-25f5418882be", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "clerk@1"}, "long_running_tool_ids": [], "id": "57f2d152-870b-43a5-b1f5-4143f3740dbf", "timestamp": 1795582537.816407}');
INSERT INTO "events" VALUES('165995c0-aac4-4cc8-966c-aa2d70a8bd83','shop','user','thread-7','e-dc413bf1-dbe7-4224-8143-25f5418882be','2026-11-25 04:55:37.931600','{"content": {"parts": [{"function_response": {"id": "c1", "name": "pay", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}, {"function_response": {"id": "c2", "name": "pay", "response": {"error": "This tool call requires confirmation, please approve or reject."}}}, {"function_response": {"id": "c3", "name": "read", "response": {"result": "text of x"}}}], "role": "user"}, "invocation_id": "e-dc413bf1-dbe7-4224-8143-25f5418882be", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {"c1": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}, "c2": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}}, "node_info": {"path": "clerk@1"}, "id": "165995c0-aac4-4cc8-966c-aa2d70a8bd83", "timestamp": 1795582537.9316003}');
INSERT INTO "events" VALUES('352711ab-7ec2-40cb-a103-8656ec707f0e','shop','user','thread-7','e-dc413bf1-dbe7-4224-8143-25f5418882be','2026-11-25 04:55:37.932377','{"content": {"parts": [{"function_call": {"id": "adk-35644d8f-db99-4715-8fd6-d409be4e4945", "args": {"originalFunctionCall": {"id": "c1", "args": {"amount": 5}, "name": "pay"}, "toolConfirmation": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}, "name": "adk_request_confirmation"}}, {"function_call": {"id": "adk-9b067a95-0779-42fc-94c9-03b912c4aba6", "args": {"originalFunctionCall": {"id": "c2", "args": {"amount": 6}, "name": "pay"}, "toolConfirmation": {"hint": "Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.", "confirmed": false}}, "name": "adk_request_confirmation"}}], "role": "model"}, "invocation_id": "e-dc413bf1-dbe7-4224-8143-25f5418882be", "author": "clerk", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": "clerk@1"}, "long_running_tool_ids": ["adk-35644d8f-db99-4715-8fd6-d409be4e4945", "adk-9b067a95-0779-42fc-94c9-03b912c4aba6"], "id": "352711ab-7ec2-40cb-a103-8656ec707f0e", "timestamp": 1795582537.9323773}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('shop','user','thread-7','{}','2026-11-25 04:55:34.984561','2026-11-25 04:55:37.932377');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('shop','user','{}','2026-11-25 04:55:34');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
COMMIT;
