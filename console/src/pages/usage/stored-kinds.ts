/** What is stored, by the kinds of the API. */
export const storedKinds: Record<string, string> = {
  tasks: 'Tasks that have ended, with their steps and events',
  files: 'Files that no task uses',
  agent_logs: 'Agents’ logs',
  events: 'Events for webhooks',
  webhook_deliveries: 'Deliveries of webhooks',
  trigger_deliveries: 'Deliveries to triggers',
  usage: 'Usage by the hour',
  audit_log: 'Audit log',
  refusals: 'Refused requests by hour',
}
