// Made by `npm run gen` from the operations of the contract.

/** The arguments of methods that stand in paths, by their names there. */
export interface PathIds {
  agent_id: [agent_id: string]
  approval_id: [approval_id: string]
  budget_id: [budget_id: string]
  client_id: [client_id: string]
  credential_id: [credential_id: string]
  delivery_id: [delivery_id: string]
  file_id: [file_id: string]
  identity_id: [identity_id: string]
  invitation_id: [invitation_id: string]
  key_id: [key_id: string]
  project_id: [project_id: string | number]
  provider: [provider: string]
  schedule_id: [schedule_id: string]
  session_id: [session_id: string]
  step_id: [step_id: string]
  task_id: [task_id: string]
  test_case_id: [test_case_id: string]
  thread_id: [thread_id: string]
  tool_call_id: [tool_call_id: string]
  tool_id: [tool_id: string]
  trigger_id: [trigger_id: string]
  user_id: [user_id: string]
  version: [version: string | number]
  webhook_id: [webhook_id: string]
}
