/** Senders whose deliveries start tasks. `hmac` and `bearer` stand for any other. */
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

/** A signature by HMAC: where it is, how it is written, and what it is over. Names of headers are in lower case. */
export interface HmacTemplate {
  header: string
  algorithm: (typeof hmacAlgorithms)[number]
  encoding: (typeof hmacEncodings)[number]
  /** What the header has before the signature. */
  prefix: string
  /** Where the time of sending is: in another header, or in the header of the signature as `t=`; null where none is signed. */
  timestamp: { header: string } | 'in signature' | null
  /** What is signed before the body; `{timestamp}` stands for the time as it was sent. */
  lead: string
}

/** What is known of a source. */
export interface SourceDefinition {
  /** The sender, in words. */
  sender: string
  /** How a delivery proves that it is genuine. */
  proof: 'hmac' | 'token' | 'standard_webhooks' | 'own'
  /** Of an HMAC whose form the source decides. */
  template?: HmacTemplate
  /** Of a token: the header, and what stands before the token. */
  token?: { header: string; prefix: string }
  /** Where the sender's own identifier of a delivery is; without one its bytes count. */
  dedupe: string | null
  /** The member of the body that says when it was sent, in milliseconds. */
  sent_at?: string
  /** Whether the sender makes the secret, so that it has to be given. */
  secret_given: boolean
  /** How a delivery is answered. */
  status: 200 | 202
}

const hex = { algorithm: 'sha256', encoding: 'hex' } as const

/** Every source as data: what proves its deliveries, and what tells one from another. */
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
    sender: 'a mail provider that posts messages as they came (MIME)',
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

/** A condition on a delivery. Of `exists`, a `value` of false asks that there is nothing. */
export interface FilterCondition {
  path: string
  op: FilterOperator
  value?: unknown
}

/** What a trigger does with a delivery: starts a task, or answers the task that waits in its thread. */
export const triggerActions = ['start', 'message'] as const
export type TriggerAction = (typeof triggerActions)[number]

export const triggerStates = ['active', 'paused'] as const

/** What became of a delivery, as it is kept. A repeated one is answered `duplicate` and kept once. */
export const triggerDeliveryStates = ['accepted', 'filtered'] as const
export const triggerOutcomes = [...triggerDeliveryStates, 'duplicate'] as const

/** Why a delivery started nothing. */
export const filteredReasons = ['filter', 'paused', 'ping', 'own_message', 'automatic_reply'] as const
export type FilteredReason = (typeof filteredReasons)[number]

/** A place in a delivery: `body.issue.title`, `headers.x-github-event`, `body.items.0`. */
export const triggerPathPattern = '(?:body|headers|delivery|trigger)(?:\\.[^\\s.{}]+)*'

/** Bounds of triggers; lengths count code points. */
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
  /** Bytes of a delivery. */
  body_bytes: 1_048_576,
  /** Characters that a delivery gives to the place of a template at most. */
  value: 100_000,
  /** Seconds that a signed time may be away from now. */
  tolerance_seconds: 300,
  /** Hours in which the same bytes are the same delivery, where the sender says no identifier. */
  same_bytes_hours: 24,
} as const
