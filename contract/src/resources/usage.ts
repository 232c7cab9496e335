import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Defaulted,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

const amount = (description: string) => Type.Number({ minimum: 0, description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Default period of usage in seconds: 30 days. */
export const usagePeriodDefault_seconds = 30 * 86_400

/** Groupings of usage. */
export const usageGroups = ['agent', 'model', 'tool', 'api_key'] as const
export type UsageGroup = (typeof usageGroups)[number]

const group = `(${usageGroups.join('|')})`
const sums = {
  calls: count('Calls of models and tools.'),
  input_tokens: count('Input tokens, including cached ones.'),
  output_tokens: count('Output tokens, including reasoning.'),
  cached_tokens: count('Input tokens that the provider read from its cache.'),
  cost_usd: amount('US dollars, of the calls whose price is known.'),
  sandbox_seconds: amount('Running time of sandbox programs in seconds.'),
  unpriced_calls: count('Model calls whose price is unknown; `cost_usd` does not contain their cost.'),
}
const sumsExample = {
  calls: 4102,
  input_tokens: 1_120_406,
  output_tokens: 83_925,
  cached_tokens: 401_200,
  cost_usd: 3.1874,
  sandbox_seconds: 12.5,
  unpriced_calls: 0,
}

export const getUsage = defineOperation({
  error_format: 'agents',
  tag: 'Budgets and usage',
  credentials: anyCredential,
  extension: true,
  id: 'getUsage',
  command: 'usage get',
  sdk: 'usage.get',
  sdk_note: 'The entries are groups; the body of a page has their total.',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/usage',
  params: { project_id: projectParameter },
  summary: 'Read usage and cost',
  description:
    'Sums over whole hours (UTC); an hour counts if its start is in the period. The default period is the last 30 days. Most expensive groups first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    group_by: Type.Optional(
      Type.String({
        pattern: `^${group}(,${group}){0,${usageGroups.length - 1}}$`,
        default: 'agent',
        description: `One or more of ${usageGroups.join(', ')}, separated by commas.`,
      }),
    ),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of groups, and the sum of all of them.',
      schema: Named(
        'Usage',
        Type.Object({
          usage: Type.Array(
            Type.Object({
              agent_id: Nullable(Type.String({ description: 'Null if usage is not grouped by agent.' })),
              model: Nullable(
                Type.String({ description: 'Null for tool calls, and if usage is not grouped by model.' }),
              ),
              tool: Nullable(
                Type.String({ description: 'Null for model calls, and if usage is not grouped by tool.' }),
              ),
              api_key_id: Nullable(
                Type.String({
                  description: 'The API key, or the session of an app or a person, that created the tasks.',
                }),
              ),
              api_key_name: Nullable(
                Type.String({
                  description:
                    'Name of the key, app or person. Null if it no longer exists, or if it belongs to another user and the caller lacks the scope `admin`.',
                }),
              ),
              ...sums,
            }),
          ),
          total: Type.Object(sums),
          files: Type.Object(
            {
              count: count('Number of stored files.'),
              bytes: count('Total size of the stored files.'),
              quota_bytes: count('Bytes that the project may store: CADRE_FILES_MAX_BYTES_PROJECT.'),
            },
            { description: "Current storage of the project's files, independent of the period." },
          ),
          period: Type.Object({ start_time: Timestamp, end_time: Timestamp }),
          pagination: OffsetPagination,
        }),
      ),
      example: {
        usage: [
          {
            agent_id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
            model: 'openai/gpt-4o-mini-2024-07-18',
            tool: null,
            api_key_id: null,
            api_key_name: null,
            ...sumsExample,
          },
        ],
        total: sumsExample,
        files: { count: 12, bytes: 3_408_211, quota_bytes: 1_073_741_824 },
        period: { start_time: '2026-10-21T09:00:00.000Z', end_time: '2026-11-20T09:30:00.000Z' },
        pagination: offsetPaginationExample,
      },
    },
  ],
  problems: ['project_not_found'],
})

/** Maximum number of series: the most expensive groups, and one for all others. */
export const usageSeriesMax = 8
/** Maximum number of buckets of a series. */
export const usagePointsMax = 1500
export const usageIntervals = { '1h': 3600, '1d': 86_400 } as const

export const getUsageSeries = defineOperation({
  error_format: 'agents',
  tag: 'Budgets and usage',
  credentials: anyCredential,
  extension: true,
  id: 'getUsageSeries',
  command: 'usage series',
  sdk: 'usage.series',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/usage/series',
  params: { project_id: projectParameter },
  summary: 'Read usage over time',
  description:
    `Spending of a project by day or hour (UTC) and by one grouping: the ${usageSeriesMax - 1} most expensive groups, and all others together. ` +
    `The default period is the last 30 days. At most ${usagePointsMax} buckets, including empty ones.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({
    group_by: Defaulted(Choice(usageGroups, { default: 'model', description: 'The grouping.' })),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    interval: Defaulted(Choice(['1h', '1d'] as const, { default: '1d', description: 'Length of a bucket.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A series for each group, most expensive first.',
      schema: Named(
        'UsageSeries',
        Type.Object({
          series: Type.Array(
            Type.Object({
              group: Nullable(
                Type.String({
                  description:
                    'The agent, model, tool or key. Empty for calls without one, such as tool calls when grouped by model. Null for all other groups together.',
                }),
              ),
              name: Nullable(
                Type.String({
                  description: 'Name of the agent or key; null if it no longer exists or the caller may not see it.',
                }),
              ),
              cost_usd: amount('US dollars in the period, of the calls whose price is known.'),
              tokens: count('Input and output tokens in the period.'),
              points: Type.Array(
                Type.Object({
                  timestamp: Timestamp,
                  cost_usd: amount('US dollars in the bucket.'),
                  tokens: count('Input and output tokens in the bucket.'),
                }),
              ),
            }),
          ),
          period: Type.Object({
            start_time: Timestamp,
            end_time: Timestamp,
            interval: Choice(['1h', '1d'] as const),
          }),
        }),
      ),
      example: {
        series: [
          {
            group: 'openai/gpt-4o-mini-2024-07-18',
            name: null,
            cost_usd: 3.1874,
            tokens: 1_204_331,
            points: [{ timestamp: '2026-11-20T00:00:00.000Z', cost_usd: 3.1874, tokens: 1_204_331 }],
          },
        ],
        period: { start_time: '2026-11-20T00:00:00.000Z', end_time: '2026-11-20T09:30:00.000Z', interval: '1d' },
      },
    },
  ],
  problems: ['project_not_found'],
})

/** Parses a valid `group_by`; removes duplicates. */
export function readGroups(text = 'agent'): UsageGroup[] {
  return usageGroups.filter((name) => text.split(',').includes(name))
}

export const usageOperations: Operation[] = [getUsage, getUsageSeries] as Operation[]
