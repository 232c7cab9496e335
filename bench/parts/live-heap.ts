import { writeSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Loaded into a service by `NODE_OPTIONS=--import`: on SIGUSR2 all garbage is collected, and a line on standard output tells
 * the megabytes that are left, of the heap of JavaScript and of memory outside it, and what keeps the process busy: its timers and sockets.
 */
setFlagsFromString('--expose-gc')
// Compiled code that is thrown away for its age would look like memory that was freed.
setFlagsFromString('--no-flush-bytecode')
const collect = runInNewContext('gc') as () => void
process.on('SIGUSR2', () => {
  // Twice: what finalizers let go in the first is collected in the second.
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  const active = process.getActiveResourcesInfo()
  const of = (kind: RegExp): number => active.filter((name) => kind.test(name)).length
  const sizes = `${(heapUsed / 2 ** 20).toFixed(3)} + ${(external / 2 ** 20).toFixed(3)} MB`
  writeSync(1, `live heap ${sizes}, ${of(/^(Timeout|Immediate)$/)} timers, ${of(/Wrap$/)} sockets\n`)
})
