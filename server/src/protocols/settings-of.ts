import type { DoorName } from '#contract/core/doors.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** The unvalidated settings of one protocol in `config.doors` of an agent; empty if there are none. */
export function settingsOf(config: Record<string, unknown>, protocol: DoorName): Record<string, unknown> {
  const doors = isObject(config['doors']) ? config['doors'] : {}
  const settings = doors[protocol]
  return isObject(settings) ? settings : {}
}
