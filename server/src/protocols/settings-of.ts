import type { DoorName } from '#contract/core/doors.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** What `config.doors` of an agent says of one protocol, as it stands there; empty where it says nothing. */
export function settingsOf(config: Record<string, unknown>, protocol: DoorName): Record<string, unknown> {
  const doors = isObject(config['doors']) ? config['doors'] : {}
  const settings = doors[protocol]
  return isObject(settings) ? settings : {}
}
