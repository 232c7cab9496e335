/** States of a schedule. A paused one is never due. */
export const scheduleStates = ['active', 'paused'] as const
export type ScheduleState = (typeof scheduleStates)[number]

/** What happens if a schedule is due while an earlier task of it is open. */
export const scheduleOverlaps = ['skip', 'queue'] as const
export type ScheduleOverlap = (typeof scheduleOverlaps)[number]

/** What happens to due times that passed while the service was down: one task for all of them, or none. */
export const scheduleCatchUps = ['once', 'none'] as const
export type ScheduleCatchUp = (typeof scheduleCatchUps)[number]

/** Why a due time created no task. */
export const scheduleErrors = ['agent_not_running', 'task_open', 'queue_full', 'missed', 'refused'] as const
export type ScheduleError = (typeof scheduleErrors)[number]
