import Type from 'typebox'
import { buckets, retention_days } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** What a limit counts: a bucket of requests, or `tokens` of models. */
export const limitNames = [...(Object.keys(buckets) as (keyof typeof buckets)[]), 'tokens'] as const

export const retentionKinds = [
  'tasks',
  'files',
  'agent_logs',
  'webhook_deliveries',
  'events',
  'usage',
  'audit_log',
  'refusals',
  'trigger_deliveries',
] as const
export type RetentionKind = (typeof retentionKinds)[number]

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
        quota_bytes: Nullable(count('Bytes that a project may store; null where there is no such limit.')),
        bytes: Nullable(
          count(
            'What it takes on disk, with indexes and with room that was freed and not used again. Told to owners and admins with the scope `admin`, where the service has one organization; else null.',
          ),
        ),
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
  retention: [{ kind: 'tasks', days: 365, quota_bytes: null, bytes: 48_824_320 }],
}

export const getRateLimits = defineOperation({
  error_format: 'agents',
  tag: 'Users',
  credentials: anyCredential,
  extension: true,
  personal: true,
  id: 'getRateLimits',
  command: 'limits get',
  sdk: 'user.limits',
  method: 'GET',
  path: '/api/v1/auth/limits',
  summary: 'Read where the limits stand',
  description:
    'Every limit of the credential at hand with what is used of it, which of them refused requests lately, how long data is kept and what it takes on disk. Cookie sessions of a user share their limits.',
  scope: null,
  bucket: 'user',
  responses: [{ status: 200, description: 'Limits, refusals and retention.', schema: RateLimits, example }],
  problems: [],
})

/** What of the service may refuse a request for being too many. */
export const refusalNames = [...limitNames, 'tasks.open_streams'] as const

export const listRateLimitRefusals = defineOperation({
  error_format: 'agents',
  tag: 'Users',
  credentials: anyCredential,
  extension: true,
  id: 'listRateLimitRefusals',
  command: 'limits refusals',
  sdk: 'user.refusals',
  method: 'GET',
  path: '/api/v1/auth/limits/refusals',
  summary: 'List what limits refused',
  description:
    `Requests that were answered 429 by a limit, by hour (UTC), credential and limit, the latest first; of the last ${retention_days.refusals} days. ` +
    "Those of the caller's credentials; with the scope `admin`, of all of the organization. A refusal is there after some seconds.",
  scope: 'api_keys:read',
  bucket: 'user',
  query: offsetQuery({
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    name: Type.Optional(Choice(refusalNames, { description: 'Only what this limit refused.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of refusals.',
      schema: Named(
        'RateLimitRefusals',
        Type.Object({
          refusals: Type.Array(
            Type.Object({
              hour: { ...Timestamp, description: 'When the hour began.' },
              name: Choice(refusalNames, { description: 'The limit.' }),
              credential_id: Type.String({
                description: 'The API key or the grant of an app; the user, whose cookie sessions share their limits.',
              }),
              credential_name: Nullable(
                Type.String({ description: 'Of the key, app or user; null where it is gone.' }),
              ),
              user_id: Type.String({ description: 'Whose credential it is.' }),
              requests: count('That were answered 429 in the hour.'),
              last_at: Timestamp,
            }),
          ),
          pagination: OffsetPagination,
        }),
      ),
      example: {
        refusals: [
          {
            hour: '2026-11-20T09:00:00.000Z',
            name: 'tasks.create',
            credential_id: 'key_01jcm3x5v8f9a2b4c6d8e0g2h4',
            credential_name: 'ci',
            user_id: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
            requests: 12,
            last_at: '2026-11-20T09:30:12.204Z',
          },
        ],
        pagination: offsetPaginationExample,
      },
    },
  ],
  problems: [],
})

export const rateLimitOperations: Operation[] = [getRateLimits, listRateLimitRefusals] as Operation[]
