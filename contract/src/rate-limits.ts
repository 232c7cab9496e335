import Type from 'typebox'
import { buckets } from './limits.ts'
import { anyCredential, defineOperation, type Operation } from './operation.ts'
import { Choice, Named, Nullable, Timestamp } from './schemas.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** What a limit counts: a bucket of requests, or `tokens` of models. */
export const limitNames = [...(Object.keys(buckets) as (keyof typeof buckets)[]), 'tokens'] as const

export const retentionKinds = ['tasks', 'agent_logs', 'webhook_deliveries', 'events', 'usage', 'audit_log'] as const

/** Where the limits of the credential at hand stand, and how long what it made is kept. */
export const RateLimits = Named(
  'RateLimits',
  Type.Object({
    is_enforced: Type.Boolean({
      description: 'False where the operator has switched limits off: then nothing is counted.',
    }),
    limits: Type.Array(
      Type.Object({
        name: Choice(limitNames, { description: 'A bucket of requests, or `tokens` of models.' }),
        window: Choice(['minute', 'hour'], { description: 'What time is counted together, in whole ones of UTC.' }),
        limit: count('As many as may be.'),
        used: count('In the running window.'),
        remaining: count('Left in the running window.'),
        resets_at: { ...Timestamp, description: 'When the running window ends.' },
      }),
    ),
    refusals: Type.Array(
      Type.Object({
        name: Choice(limitNames),
        this_hour: count('Requests that were answered 429 in the running hour.'),
        previous_hour: count('Those of the hour before.'),
        last_at: Timestamp,
      }),
      { description: 'Buckets whose requests were refused in the running hour or the one before, the latest first.' },
    ),
    retention: Type.Array(
      Type.Object({
        kind: Choice(retentionKinds),
        days: Nullable(count('At least so many days; null where it is kept for ever.')),
      }),
    ),
  }),
)

const example = {
  is_enforced: true,
  limits: [
    {
      name: 'tasks.create',
      window: 'minute',
      limit: 300,
      used: 300,
      remaining: 0,
      resets_at: '2026-11-20T09:31:00.000Z',
    },
  ],
  refusals: [{ name: 'tasks.create', this_hour: 12, previous_hour: 0, last_at: '2026-11-20T09:30:12.204Z' }],
  retention: [{ kind: 'tasks', days: 365 }],
}

export const getRateLimits = defineOperation({
  family: 'A',
  tag: 'Users',
  credentials: anyCredential,
  extension: true,
  personal: true,
  id: 'getRateLimits',
  method: 'GET',
  path: '/api/v1/auth/limits',
  summary: 'Read where the limits stand',
  description:
    'Every limit of the credential at hand with what is used of it, which of them refused requests lately, and how long data is kept. Cookie sessions of a user share their limits.',
  scope: null,
  bucket: 'user',
  responses: [{ status: 200, description: 'Limits, refusals and retention.', schema: RateLimits, example }],
  problems: [],
})

export const rateLimitOperations: Operation[] = [getRateLimits] as Operation[]
