/**
 * The role of a process. `api` answers requests and streams tasks; `worker` runs tasks and background jobs: schedules,
 * webhooks, retention, tasks of dead workers. `all` does both.
 */
export const roles = ['all', 'api', 'worker'] as const

export type Role = (typeof roles)[number]

/** Whether a process of this role answers requests of the API. */
export function servesApi(role: Role): boolean {
  return role !== 'worker'
}

/** Whether a process of this role runs tasks and background jobs. */
export function works(role: Role): boolean {
  return role !== 'api'
}
