/** Senders whose deliveries can start tasks. `hmac` and `bearer` are for all other senders. */
export const triggerSources = [
  'github',
  'gitlab',
  'slack',
  'stripe',
  'linear',
  'standard_webhooks',
  'email',
  'hmac',
  'bearer',
] as const
export type TriggerSource = (typeof triggerSources)[number]

export const hmacAlgorithms = ['sha256', 'sha512', 'sha1'] as const
export const hmacEncodings = ['hex', 'base64'] as const

/** An HMAC signature: its header, its encoding and the signed content. Header names are lowercase. */
export interface HmacTemplate {
  header: string
  algorithm: (typeof hmacAlgorithms)[number]
  encoding: (typeof hmacEncodings)[number]
  /** Text before the signature in the header. */
  prefix: string
  /**
   * Where the timestamp is: in another header, or in the signature header as `t=`. Null if no timestamp is signed.
   */
  timestamp: { header: string } | 'in signature' | null
  /** Signed text before the body; `{timestamp}` is replaced by the timestamp as received. */
  lead: string
}

/** Facts about a source. */
export interface SourceDefinition {
  /** Description of the sender. */
  sender: string
  /** How a delivery is authenticated. */
  proof: 'hmac' | 'token' | 'standard_webhooks' | 'own'
  /** For an HMAC signature that the source defines. */
  template?: HmacTemplate
  /** For a token: its header, and the text before it. */
  token?: { header: string; prefix: string }
  /** Path of the sender's delivery id; null to compare the bytes of the body. */
  dedupe: string | null
  /** The member of the body with the time of sending, in milliseconds. */
  sent_at?: string
  /** Whether the sender creates the secret, so that it must be given. */
  secret_given: boolean
  /** Status of the response to a delivery. */
  status: 200 | 202
}

const hex = { algorithm: 'sha256', encoding: 'hex' } as const

/** How each source authenticates and identifies its deliveries. */
export const sourceDefinitions: Record<TriggerSource, SourceDefinition> = {
  github: {
    sender: 'GitHub',
    proof: 'hmac',
    template: { ...hex, header: 'x-hub-signature-256', prefix: 'sha256=', timestamp: null, lead: '' },
    dedupe: 'headers.x-github-delivery',
    secret_given: false,
    status: 202,
  },
  gitlab: {
    sender: 'GitLab',
    proof: 'token',
    token: { header: 'x-gitlab-token', prefix: '' },
    dedupe: 'headers.idempotency-key',
    secret_given: false,
    status: 202,
  },
  slack: {
    sender: 'Slack',
    proof: 'hmac',
    template: {
      ...hex,
      header: 'x-slack-signature',
      prefix: 'v0=',
      timestamp: { header: 'x-slack-request-timestamp' },
      lead: 'v0:{timestamp}:',
    },
    dedupe: 'body.event_id',
    secret_given: true,
    status: 200,
  },
  stripe: {
    sender: 'Stripe',
    proof: 'hmac',
    template: {
      ...hex,
      header: 'stripe-signature',
      prefix: 'v1=',
      timestamp: 'in signature',
      lead: '{timestamp}.',
    },
    dedupe: 'body.id',
    secret_given: true,
    status: 202,
  },
  linear: {
    sender: 'Linear',
    proof: 'hmac',
    template: { ...hex, header: 'linear-signature', prefix: '', timestamp: null, lead: '' },
    dedupe: 'headers.linear-delivery',
    sent_at: 'webhookTimestamp',
    secret_given: true,
    status: 202,
  },
  standard_webhooks: {
    sender: 'a sender that signs by Standard Webhooks',
    proof: 'standard_webhooks',
    dedupe: 'headers.webhook-id',
    secret_given: false,
    status: 202,
  },
  email: {
    sender: 'a mail provider that posts raw messages (MIME)',
    proof: 'own',
    dedupe: 'body.message_id',
    secret_given: false,
    status: 202,
  },
  hmac: {
    sender: 'any sender that signs by HMAC',
    proof: 'own',
    dedupe: null,
    secret_given: false,
    status: 202,
  },
  bearer: {
    sender: 'any sender that sends a token',
    proof: 'token',
    token: { header: 'authorization', prefix: 'Bearer ' },
    dedupe: null,
    secret_given: false,
    status: 202,
  },
}

/** Comparisons of a filter. */
export const filterOperators = ['eq', 'ne', 'in', 'exists', 'contains'] as const
export type FilterOperator = (typeof filterOperators)[number]

/** A condition on a delivery. `exists` with `value` false requires that the path has no value. */
export interface FilterCondition {
  path: string
  op: FilterOperator
  value?: unknown
}

/** What a trigger does with a delivery: start a task, or send a message to the task that waits in its thread. */
export const triggerActions = ['start', 'message'] as const
export type TriggerAction = (typeof triggerActions)[number]

export const triggerStates = ['active', 'paused'] as const

/** Stored states of a delivery. A repeated delivery is not stored again; its response says `duplicate`. */
export const triggerDeliveryStates = ['accepted', 'filtered'] as const
export const triggerOutcomes = [...triggerDeliveryStates, 'duplicate'] as const

/** Why a delivery started nothing. */
export const filteredReasons = ['filter', 'paused', 'ping', 'own_message', 'automatic_reply'] as const
export type FilteredReason = (typeof filteredReasons)[number]

/** A path in a delivery: `body.issue.title`, `headers.x-github-event`, `body.items.0`. */
export const triggerPathPattern = '(?:body|headers|delivery|trigger)(?:\\.[^\\s.{}]+)*'

/** Bounds of triggers. Lengths count code points. */
export const triggerBounds = {
  name: 100,
  secret: 256,
  secret_min: 16,
  filter: 20,
  path: 200,
  filter_bytes: 16_384,
  input: 20_000,
  input_bytes: 65_536,
  thread_key: 500,
  header: 100,
  prefix: 50,
  per_project: 500,
  overlap_seconds: 30 * 86_400,
  /** Size of a delivery in bytes. */
  body_bytes: 1_048_576,
  /** Maximum number of characters that replace a placeholder of a template. */
  value: 100_000,
  /** How far a signed timestamp may differ from the current time, in seconds. */
  tolerance_seconds: 300,
  /** Without an id of the sender, the same bytes within so many hours are the same delivery. */
  same_bytes_hours: 24,
} as const
