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

/** Names of limits: rate limits of requests, and `tokens` of models. */
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

/** The limits of the credential with their usage, and the retention of data. */
export const RateLimits = Named(
  'RateLimits',
  Type.Object({
    is_enforced: Type.Boolean({
      description: 'False if the operator has switched limits off. Then nothing is counted.',
    }),
    limits: Type.Array(
      Type.Object({
        name: Choice(limitNames, { description: 'A rate limit of requests, or `tokens` of models.' }),
        window: Choice(['minute', 'hour'], { description: 'Length of the window, aligned to UTC.' }),
        limit: count('Maximum per window.'),
        used: count('Used in the current window.'),
        remaining: count('Left in the current window.'),
        resets_at: { ...Timestamp, description: 'When the current window ends.' },
      }),
    ),
    refusals: Type.Array(
      Type.Object({
        name: Choice(limitNames),
        this_hour: count('Requests that got status 429 in the current hour.'),
        previous_hour: count('Requests that got status 429 in the previous hour.'),
        last_at: Timestamp,
      }),
      { description: 'Limits that refused requests in the current or previous hour, latest first.' },
    ),
    retention: Type.Array(
      Type.Object({
        kind: Choice(retentionKinds),
        days: Nullable(count('Minimum retention in days; null if the data is kept forever.')),
        quota_bytes: Nullable(count('Bytes that a project may store; null if there is no limit.')),
        bytes: Nullable(
          count(
            'Size on disk, including indexes and free space in the tables. Only for owners and admins with the scope `admin`, if the service has one organization; otherwise null.',
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
  summary: 'Read the limits and their usage',
  description:
    'Every limit of the credential with its usage, recent refusals, and retention and size of data. Cookie sessions of a user share their limits.',
  scope: null,
  bucket: 'user',
  responses: [{ status: 200, description: 'Limits, refusals and retention.', schema: RateLimits, example }],
  problems: [],
})

/** Limits that can refuse a request with 429. */
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
  summary: 'List requests that limits refused',
  description:
    `Requests of the last ${retention_days.refusals} days that got status 429 because of a limit, grouped by hour (UTC), credential and limit, latest first. ` +
    "Only for the caller's credentials; with the scope `admin`, for all credentials of the organization. Refusals appear after a few seconds.",
  scope: 'api_keys:read',
  bucket: 'user',
  query: offsetQuery({
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    name: Type.Optional(Choice(refusalNames, { description: 'Only refusals by this limit.' })),
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
              hour: { ...Timestamp, description: 'Start of the hour.' },
              name: Choice(refusalNames, { description: 'The limit that refused the requests.' }),
              credential_id: Type.String({
                description:
                  'The API key, the grant of an app, or the user for cookie sessions, which share their limits.',
              }),
              credential_name: Nullable(
                Type.String({ description: 'Name of the key, app or user; null if it no longer exists.' }),
              ),
              user_id: Type.String({ description: 'The owner of the credential.' }),
              requests: count('Requests that got status 429 in the hour.'),
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
