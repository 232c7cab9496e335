import { makeEgress } from '../src/platform/egress/safe-fetch.ts'
import type { ToolCallContext } from '../src/engine/tools/tool.ts'

/** The way out for tests of tools: public addresses, and servers of the test on loopback. */
export const toolEgress = makeEgress({ allow: ['loopback'] })

/** The context of a call as the engine makes it. */
export function toolCall(more: Partial<ToolCallContext> = {}): ToolCallContext {
  return {
    task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
    agent_id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
    project_id: 42,
    party: { org_id: 'org_01jcm3x5v8f9a2b4c6d8e0g2h4', project_id: 42 },
    step_id: 'step_01jcm3x5v8f9a2b4c6d8e0g2h4',
    idempotency_key: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4:3',
    traceparent: undefined,
    signal: new AbortController().signal,
    ...more,
  }
}
