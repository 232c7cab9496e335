import type { Egress } from '../../../platform/egress/safe-fetch.ts'
import { currentTime } from './current-time.ts'
import { engineAnswered } from './engine-answered.ts'
import { httpRequest } from './http-request.ts'
import { runJavascript } from '../sandbox/run-javascript.ts'
import type { Sandboxes } from '../sandbox/sandbox.ts'
import { readFile, saveFile } from './task-files.ts'
import type { Tool } from '../tool.ts'

/** The built-in tools by name, for an agent with these environment variables. */
export function builtins(
  { egress, sandboxes, now }: { egress: Egress; sandboxes: Sandboxes; now: () => Date },
  environment: Readonly<Record<string, string>>,
): ReadonlyMap<string, Tool> {
  const all = [
    httpRequest(egress),
    runJavascript(sandboxes, environment),
    readFile,
    saveFile,
    currentTime(now),
    ...engineAnswered,
  ]
  return new Map(all.map((tool) => [tool.name, tool]))
}
