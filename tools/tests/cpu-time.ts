import { readFileSync } from 'node:fs'

/** A tick of `/proc`, in milliseconds: Linux reports hundredths of a second to every program. */
const tick_ms = 10

/**
 * Milliseconds of processor time that this process and its ended children have used, as proc(5) counts it; without
 * `/proc`, those of this process.
 */
export function cpuTime(): number {
  try {
    // The second field is the program's name in parentheses, and may contain spaces.
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /su, '')
      .split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return ticks * tick_ms
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}
