import type { ModelRequest } from '../../src/engine/models/model.ts'

/** A request that says `content`, and nothing else that is not in `more`. */
export function modelRequest(content: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'fake-1',
    system_prompt: undefined,
    messages: [{ role: 'user', content }],
    tools: [],
    temperature: undefined,
    max_tokens: undefined,
    signal: new AbortController().signal,
    ...more,
  }
}
