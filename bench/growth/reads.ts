import { days } from './fill.ts'

/** A read of a large project and agent, and what it is compared with: the same of small ones, where nothing else is said. */
export interface Comparison {
  name: string
  /** Rows that it is among. */
  rows: number
  path(project: number, agent: string): string
  smallPath?(project: number, agent: string): string
}

/** What a list, a log, metrics and a search are asked for. */
export function comparisons(sizes: { agents: number; logs: number; tasks: number; projects: number }): Comparison[] {
  const agents = (query: string) => (project: number) => `/api/v1/projects/${project}/agents?limit=20${query}`
  const of = (rest: string) => (project: number, agent: string) => `/api/v1/projects/${project}/agents/${agent}/${rest}`
  const far = (count: number, share: number): number => Math.max(0, Math.floor(count * share) - 20)
  const named = (query: string): string => query.replaceAll(/(_time|_after|_before)=[^&]*/g, '$1').replaceAll('&', ' ')
  const period = `&start_time=${ago(20.3)}&end_time=${ago(3.7)}`

  return [
    ...[
      '',
      '&sort=created_at',
      '&sort=name',
      '&sort=-name',
      '&status=error',
      '&status=error&sort=name',
      '&status=running&sort=-name',
      '&tag=team-7',
      '&model=builtin/scripted',
      '&search=4711',
      '&search=no-such-word',
      '&search=47',
      '&search=agent',
    ].map((query) => ({ name: `Agents${named(query)}`, rows: sizes.agents, path: agents(query) })),
    ...[0.01, 0.5, 1].map((share) => ({
      name: `Agents, from ${far(sizes.agents, share).toLocaleString('en')}`,
      rows: sizes.agents,
      path: agents(`&offset=${far(sizes.agents, share)}`),
      smallPath: agents(''),
    })),
    {
      name: 'An agent with its statistics',
      rows: sizes.tasks,
      path: (project, agent) => `/api/v1/projects/${project}/agents/${agent}`,
    },
    ...['', '&level=error', period, `&level=warn${period}`, `&start_time=${ago(0.5)}`].map((query) => ({
      name: `Logs${named(query)}`,
      rows: sizes.logs,
      path: of(`logs?limit=20${query}`),
    })),
    ...['', '&level=error', `&level=warn${period}`].map((query) => ({
      name: `Logs of a project${named(query)}`,
      rows: sizes.logs,
      path: (project: number) => `/api/v1/projects/${project}/logs?limit=20${query}`,
    })),
    ...(
      [
        ['1m', 1],
        ['5m', 5],
        ['15m', 15],
        ['1h', days],
        ['1d', days],
      ] as const
    ).map(([interval, length]) => ({
      name: `Metrics, ${interval} over ${length} days`,
      rows: sizes.tasks,
      path: of(`metrics?interval=${interval}&start_time=${ago(length + 0.3)}&end_time=${ago(0.3)}`),
    })),
    ...[
      '',
      '&status=failed',
      '&status=running',
      '&sort=created_at',
      `&created_after=${ago(10.2)}&created_before=${ago(3.1)}`,
      `&status=failed&created_after=${ago(10.2)}`,
      `&created_before=${ago(25)}`,
    ].map((query) => ({
      name: `Tasks of an agent${named(query)}`,
      rows: sizes.tasks,
      path: of(`tasks?limit=20${query}`),
    })),
    ...['', '&status=failed', `&created_after=${ago(1)}`].map((query) => ({
      name: `Tasks of a project${named(query)}`,
      rows: sizes.tasks,
      path: (project: number) => `/api/v1/projects/${project}/tasks?limit=20${query}`,
    })),
    {
      name: `Tasks of an agent, from ${far(sizes.tasks, 0.5).toLocaleString('en')}`,
      rows: sizes.tasks,
      path: of(`tasks?limit=20&offset=${far(sizes.tasks, 0.5)}`),
      smallPath: of('tasks?limit=20'),
    },
    ...[
      '',
      '&sort=name',
      '&sort=updated_at&order=desc',
      '&search=name-4711',
      '&search=name-47&sort=name',
      '&search=rare-word',
      '&search=common-word',
      '&search=e',
      '&search=no-such-word',
    ].map((query) => ({
      name: `Projects${named(query)}`,
      rows: sizes.projects,
      path: () => `/api/v1/projects?limit=20${query}`,
      smallPath: () => '/api/v1/projects?limit=20&search=large',
    })),
  ]
}

function ago(length_days: number): string {
  return new Date(Date.now() - length_days * 86_400_000).toISOString()
}
