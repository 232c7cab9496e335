/** Labels of the keys that encrypt columns of the database. A new label needs its column in `encryptedColumns`. */
export const secretLabels = {
  agent_environment: 'agent-environment',
  credential: 'project-credential',
  client_secret: 'credential-client-secret',
  tokens: 'credential-tokens',
  verifier: 'credential-verifier',
  model_provider: 'model-provider',
  model_turn: 'model-turn',
  idempotent_answer: 'idempotent-answer',
  signing_key: 'signing_key',
  trigger: 'trigger-secret',
  webhook: 'webhook-secret',
  push_headers: 'push-headers',
} as const
