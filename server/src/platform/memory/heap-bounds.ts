import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * Up to this size V8 doubles the young generation. Without a bound it takes 128 MB on a large machine, which a service
 * of short requests fills with garbage and never gives back.
 */
const youngMax_bytes = 32 * 1024 * 1024
/** How far the old generation grows beyond what was alive at the last full collection. V8's own choice is up to four times. */
const oldGrowth_percent = 40
const look_ms = 250

/** Options of V8 that an operator who sets one of them has decided about. */
const ownOptions = /semi[-_]space|heap[-_]growing|optimize[-_]for[-_]size/

/**
 * Bounds how much memory V8 takes for speed from now on, in this process alone. Does nothing where the command line or
 * `NODE_OPTIONS` sets such options of V8. The function that is returned ends it.
 */
export function boundHeap(): () => void {
  // oxlint-disable-next-line node/no-process-env -- Node's own options, which are no setting of the service
  const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
  if (options.some((option) => ownOptions.test(option))) return () => {}
  setFlagsFromString(`--heap-growing-percent=${oldGrowth_percent}`)
  // The maximum is read when a heap is made, before any code runs; the factor by which it grows is read each time.
  let factor = 2
  const timer = setInterval(() => {
    const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
    const wanted = size >= youngMax_bytes ? 1 : 2
    if (wanted === factor) return
    factor = wanted
    setFlagsFromString(`--semi-space-growth-factor=${factor}`)
  }, look_ms)
  timer.unref()
  return () => clearInterval(timer)
}
