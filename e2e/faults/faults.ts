import type { Fault } from './fault.ts'
import { apiKilled } from './f01-api-killed.ts'
import { postgresKilled } from './f04-postgres-killed.ts'

/** The fault plan (reliability 4), in its order. */
export const faults: readonly Fault[] = [apiKilled, postgresKilled]
