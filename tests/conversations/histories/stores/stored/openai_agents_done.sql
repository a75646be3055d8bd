BEGIN TRANSACTION;
CREATE TABLE agent_messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id TEXT NOT NULL,
                message_data TEXT NOT NULL,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id)
                    ON DELETE CASCADE
            );
INSERT INTO "agent_messages" VALUES(1,'thread-7','{"content": "Pay 5 and 6", "role": "user"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(2,'thread-7','{"id": "m", "content": [{"annotations": [], "text": "Let me see.", "type": "output_text"}], "role": "assistant", "status": "completed", "type": "message"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(3,'thread-7','{"arguments": "{\"amount\": 5}", "call_id": "c1", "name": "pay", "type": "function_call", "id": "fc_c1"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(4,'thread-7','{"arguments": "{\"amount\": 6}", "call_id": "c2", "name": "pay", "type": "function_call", "id": "fc_c2"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(5,'thread-7','{"arguments": "{\"path\": \"x\"}", "call_id": "c3", "name": "read", "type": "function_call", "id": "fc_c3"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(6,'thread-7','{"call_id": "c3", "output": "text of x", "type": "function_call_output"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(7,'thread-7','{"call_id": "c1", "output": "paid 5", "type": "function_call_output"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(8,'thread-7','{"call_id": "c2", "output": "no 6", "type": "function_call_output"}','2026-11-25 04:55:09');
INSERT INTO "agent_messages" VALUES(9,'thread-7','{"id": "m", "content": [{"annotations": [], "text": "Done.", "type": "output_text"}], "role": "assistant", "status": "completed", "type": "message"}','2026-11-25 04:55:09');
CREATE TABLE agent_sessions (
                session_id TEXT PRIMARY KEY,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
            );
INSERT INTO "agent_sessions" VALUES('thread-7','2026-11-25 04:55:09','2026-11-25 04:55:09');
CREATE INDEX idx_agent_messages_session_id
            ON agent_messages (session_id, id)
        ;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('agent_messages',9);
COMMIT;
