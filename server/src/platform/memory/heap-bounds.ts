import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * Size up to which V8 may double the young generation. Without a limit it takes 128 MB on a large machine, which a service
 * with short requests fills with garbage and never releases.
 */
const youngMax_bytes = 32 * 1024 * 1024
/** How much the old generation may grow beyond the live size at the last full collection. V8's default is up to four times. */
const oldGrowth_percent = 40
const poll_ms = 250

/** Options of V8 by which an operator has chosen other bounds. */
const ownOptions = /semi[-_]space|heap[-_]growing|optimize[-_]for[-_]size/

/**
 * Limits the memory that V8 uses for speed in this process. Does nothing if the command line or `NODE_OPTIONS` sets such
 * options of V8. Returns a function that ends it.
 */
export function boundHeap(): () => void {
  // oxlint-disable-next-line node/no-process-env -- Node's own options, which are no setting of the service
  const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
  if (options.some((option) => ownOptions.test(option))) return () => {}
  setFlagsFromString(`--heap-growing-percent=${oldGrowth_percent}`)
  // V8 reads the maximum size before any code runs, but the growth factor at each growth.
  let factor = 2
  const timer = setInterval(() => {
    const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
    const wanted = size >= youngMax_bytes ? 1 : 2
    if (wanted === factor) return
    factor = wanted
    setFlagsFromString(`--semi-space-growth-factor=${factor}`)
  }, poll_ms)
  timer.unref()
  return () => clearInterval(timer)
}
