import type { Fault } from './fault.ts'
import { apiKilled } from './f01-api-killed.ts'
import { failpoints } from './f02-failpoints.ts'
import { workerKilled } from './f03-worker-killed.ts'
import { postgresKilled } from './f04-postgres-killed.ts'
import { databaseUnreachable } from './f05-network.ts'
import { diskFull } from './f06-disk-full.ts'
import { writeErrors } from './f07-write-errors.ts'
import { poolExhausted } from './f08-pool-exhausted.ts'
import { deadlocks } from './f09-deadlocks.ts'
import { clockJumps } from './f10-clock.ts'
import { modelProvider } from './f11-model-provider.ts'
import { webhookReceivers } from './f12-receivers.ts'
import { slowClients } from './f13-slow-clients.ts'
import { hostileInput } from './f14-hostile-input.ts'
import { eventLoopStalled } from './f15-stall.ts'
import { memoryPressure } from './f16-memory.ts'
import { deploy } from './f17-deploy.ts'
import { everything } from './f18-everything.ts'

/** All faults, in their order. */
export const faults: readonly Fault[] = [
  apiKilled,
  failpoints,
  workerKilled,
  postgresKilled,
  databaseUnreachable,
  diskFull,
  writeErrors,
  poolExhausted,
  deadlocks,
  clockJumps,
  modelProvider,
  webhookReceivers,
  slowClients,
  hostileInput,
  eventLoopStalled,
  memoryPressure,
  deploy,
  everything,
]
