import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import { agentQuery } from '../../agents/agent-queries.ts'
import { api } from '../../api/client.ts'
import { blankInput } from './input.ts'

/** What the tasks of an agent, or of one of its versions, must be given; undefined where that is a message. */
export function useInputSchema(
  project_id: string,
  agent_id: string | undefined,
  version: number | undefined,
): Record<string, unknown> | undefined {
  const agent = useQuery({ ...agentQuery(project_id, agent_id ?? ''), enabled: agent_id !== undefined })
  const old = useQuery({
    queryKey: ['project', project_id, 'agents', 'version', agent_id, version],
    queryFn: () => api.agents.getVersion(project_id, agent_id!, version!),
    enabled: agent_id !== undefined && version !== undefined,
    staleTime: Infinity,
  })
  const { input_schema } = old.data?.config ?? agent.data?.agent.config ?? {}
  return isObject(input_schema) ? input_schema : undefined
}

/** Fills an untouched input with what a schema requires, or with a first message without one; typed input stays. */
export function useBlankInput(
  schema: object | undefined,
  setText: (change: (now: string) => string) => void,
  message = '',
): string {
  const blank = schema ? blankInput(schema) : message
  const last = useRef(blank)
  useEffect(() => {
    const before = last.current
    last.current = blank
    setText((now) => (now.trim() === '' || now === before ? blank : now))
  }, [blank, setText])
  return blank
}
