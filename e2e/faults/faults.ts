import type { Fault } from './fault.ts'
import { apiKilled } from './catalog/f01-api-killed.ts'
import { failpoints } from './catalog/f02-failpoints.ts'
import { workerKilled } from './catalog/f03-worker-killed.ts'
import { postgresKilled } from './catalog/f04-postgres-killed.ts'
import { databaseUnreachable } from './catalog/f05-network.ts'
import { diskFull } from './catalog/f06-disk-full.ts'
import { writeErrors } from './catalog/f07-write-errors.ts'
import { poolExhausted } from './catalog/f08-pool-exhausted.ts'
import { deadlocks } from './catalog/f09-deadlocks.ts'
import { clockJumps } from './catalog/f10-clock.ts'
import { modelProvider } from './catalog/f11-model-provider.ts'
import { webhookReceivers } from './catalog/f12-receivers.ts'
import { slowClients } from './catalog/f13-slow-clients.ts'
import { hostileInput } from './catalog/f14-hostile-input.ts'
import { eventLoopStalled } from './catalog/f15-stall.ts'
import { memoryPressure } from './catalog/f16-memory.ts'
import { deploy } from './catalog/f17-deploy.ts'
import { everything } from './catalog/f18-everything.ts'

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
