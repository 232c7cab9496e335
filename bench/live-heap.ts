import { writeSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded into a service by `NODE_OPTIONS=--import`: on SIGUSR2 all garbage is collected, and a line on standard output tells
 * the megabytes that are left, of the heap of JavaScript and of memory outside it.
 */
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
process.on('SIGUSR2', () => {
  // Twice: what finalizers let go in the first is collected in the second.
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  writeSync(1, `live heap ${(heapUsed / 2 ** 20).toFixed(1)} + ${(external / 2 ** 20).toFixed(1)} MB\n`)
})
