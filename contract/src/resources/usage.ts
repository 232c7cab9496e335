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

/** What usage can be grouped by. */
export const usageGroups = ['agent', 'model', 'tool', 'api_key'] as const
export type UsageGroup = (typeof usageGroups)[number]

const group = `(${usageGroups.join('|')})`
const sums = {
  calls: count('Calls of models and tools.'),
  input_tokens: count('Cached ones among them.'),
  output_tokens: count('Reasoning among them.'),
  cached_tokens: count('Input tokens that a provider had kept.'),
  cost_usd: amount('US dollars, of the calls whose price is known.'),
  sandbox_seconds: amount('Seconds that programs ran in the sandbox.'),
  unpriced_calls: count('Calls of models whose price is not known: their cost is missing in `cost_usd`.'),
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
  sdk_note: 'Groups are the entries; their sum is in the body of a page.',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/usage',
  params: { project_id: projectParameter },
  summary: 'Read what was used and what it cost',
  description:
    'Sums over whole hours of UTC, the last 30 days unless said otherwise; an hour counts where it begins. The dearest groups come first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    group_by: Type.Optional(
      Type.String({
        pattern: `^${group}(,${group}){0,${usageGroups.length - 1}}$`,
        default: 'agent',
        description: `Some of ${usageGroups.join(', ')}, with commas between.`,
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
              agent_id: Nullable(Type.String({ description: 'Null where it is not asked for.' })),
              model: Nullable(Type.String({ description: 'Null of calls of tools, and where it is not asked for.' })),
              tool: Nullable(Type.String({ description: 'Null of calls of models, and where it is not asked for.' })),
              api_key_id: Nullable(
                Type.String({ description: 'The key, or the session of an app or a person, that made the tasks.' }),
              ),
              api_key_name: Nullable(
                Type.String({
                  description:
                    "The name of the key, app or person. Null of what is gone, and of others' where the caller lacks the scope `admin`.",
                }),
              ),
              ...sums,
            }),
          ),
          total: Type.Object(sums),
          files: Type.Object(
            {
              count: count('Files that are stored now.'),
              bytes: count('Their bytes.'),
              quota_bytes: count('Bytes that the project may store: CADRE_FILES_MAX_BYTES_PROJECT.'),
            },
            { description: 'What the files of the project take at this moment, whatever the period.' },
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

/** Groups that a series of usage tells apart: the dearest, and the others together. */
export const usageSeriesMax = 8
/** Buckets that a series of usage has at most. */
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
  summary: 'Read what was used over time',
  description:
    `What a project spent by day or hour of UTC, by one kind of group: the ${usageSeriesMax - 1} dearest groups, and the others together. ` +
    `The last 30 days unless said otherwise; at most ${usagePointsMax} buckets, and empty ones are there.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({
    group_by: Defaulted(Choice(usageGroups, { default: 'model', description: 'What the series are of.' })),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    interval: Defaulted(Choice(['1h', '1d'] as const, { default: '1d', description: 'Length of a bucket.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A series for each group, the dearest first.',
      schema: Named(
        'UsageSeries',
        Type.Object({
          series: Type.Array(
            Type.Object({
              group: Nullable(
                Type.String({
                  description:
                    'The agent, model, tool or key. Empty for what has none, such as calls of tools by model. Null for the other groups together.',
                }),
              ),
              name: Nullable(Type.String({ description: 'Of the agent or key, where it is known to the caller.' })),
              cost_usd: amount('US dollars in the period, of the calls whose price is known.'),
              tokens: count('Input and output tokens in the period.'),
              points: Type.Array(
                Type.Object({
                  timestamp: Timestamp,
                  cost_usd: amount('In the bucket.'),
                  tokens: count('In the bucket.'),
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

/** `group_by` of a request that was found valid, without repetitions. */
export function readGroups(text = 'agent'): UsageGroup[] {
  return usageGroups.filter((name) => text.split(',').includes(name))
}

export const usageOperations: Operation[] = [getUsage, getUsageSeries] as Operation[]
