/**
 * What a process of the service does. `api` answers requests and watches tasks; `worker` runs them, and does all that is
 * done in the background: schedules, webhooks, retention, what dead processes left; `all` does both.
 */
export const roles = ['all', 'api', 'worker'] as const

export type Role = (typeof roles)[number]

/** Whether a process of this role answers requests of the API. */
export function servesApi(role: Role): boolean {
  return role !== 'worker'
}

/** Whether a process of this role runs tasks and works in the background. */
export function works(role: Role): boolean {
  return role !== 'api'
}
