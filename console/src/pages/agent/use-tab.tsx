import { Snippets } from '../../agents/snippets.tsx'
import { Panel } from '../../ui/page.tsx'
import type { TabProps } from './tab.ts'

/** How a program gives it a task. */
export function UseTab({ project_id, agent }: TabProps) {
  return (
    <Panel title="From a program">
      <div className="p-4">
        <p className="mb-3 max-w-3xl text-soft">
          The task is durable before the request is answered. <code>wait=30</code> also waits for its end, at most 30
          seconds.
        </p>
        <Snippets
          shown={{
            method: 'POST',
            path: `/api/v1/projects/${project_id}/agents/${agent.id}/tasks?wait=30`,
            body: { input: 'Hello, agent' },
            sdk: [
              `for await (const event of cadre.tasks.run('${project_id}', '${agent.id}', { input: 'Hello, agent' }))`,
              '  console.log(event.type)',
            ].join('\n'),
          }}
        />
      </div>
    </Panel>
  )
}
