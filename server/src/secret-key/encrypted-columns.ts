import { secretLabels } from '../platform/crypto/secret-labels.ts'

/** A column whose values are encrypted with the secret key. */
export interface EncryptedColumn {
  table: string
  column: string
  /** The label of its values (`Secrets.encrypt`). */
  label: string
  /** SQL expression for the additional authenticated data (AAD) of a row's value. */
  aad: string
  /** The columns of the table's primary key in their order, with their types. */
  key: Readonly<Record<string, 'text' | 'integer' | 'bytea'>>
  /** SQL condition for the rows whose values are encrypted; without it all are. */
  where?: string
}

const byId = { aad: 'id', key: { id: 'text' } } as const
const ofCredential = { aad: 'credential_id', key: { credential_id: 'text' } } as const

/** Every column that is encrypted with the secret key. A test compares them with the schema. */
export const encryptedColumns: readonly EncryptedColumn[] = [
  { table: 'agent', column: 'environment', label: secretLabels.agent_environment, ...byId },
  {
    table: 'agent_version',
    column: 'environment',
    label: secretLabels.agent_environment,
    aad: 'agent_id',
    key: { agent_id: 'text', version: 'integer' },
  },
  { table: 'credential', column: 'value', label: secretLabels.credential, ...byId },
  { table: 'credential_oauth', column: 'client_secret', label: secretLabels.client_secret, ...ofCredential },
  { table: 'credential_oauth', column: 'tokens', label: secretLabels.tokens, ...ofCredential },
  {
    table: 'credential_authorization',
    column: 'verifier',
    label: secretLabels.verifier,
    aad: 'credential_id',
    key: { state_hash: 'bytea' },
  },
  { table: 'model_provider', column: 'api_key', label: secretLabels.model_provider, ...byId },
  { table: 'webhook', column: 'secret', label: secretLabels.webhook, ...byId },
  { table: 'webhook', column: 'previous_secret', label: secretLabels.webhook, ...byId },
  { table: 'webhook', column: 'push_headers', label: secretLabels.push_headers, ...byId },
  { table: 'trigger', column: 'secret', label: secretLabels.trigger, ...byId },
  { table: 'trigger', column: 'previous_secret', label: secretLabels.trigger, ...byId },
  {
    table: 'service_secret',
    column: 'value',
    label: secretLabels.signing_key,
    aad: 'name',
    key: { name: 'text' },
    where: `name = '${secretLabels.signing_key}'`,
  },
  {
    table: 'idempotency',
    column: 'body',
    label: secretLabels.idempotent_answer,
    aad: "subject || ' ' || key",
    key: { subject: 'text', key: 'text' },
  },
  {
    table: 'task_step',
    column: 'turn',
    label: secretLabels.model_turn,
    aad: 'agent_id',
    key: { task_id: 'text', index: 'integer' },
  },
]
