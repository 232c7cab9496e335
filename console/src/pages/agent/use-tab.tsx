import { Link } from '@tanstack/react-router'
import { skeletonOf } from '../../agents/schema-skeleton.ts'
import { sdkOf, shellOf, Snippets } from '../../agents/snippets.tsx'
import { paths } from '../../paths.ts'
import { quoted } from '../../shell-quoting.ts'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { Panel } from '../../ui/page.tsx'
import { OtherClients } from './other-clients.tsx'
import type { TabProps } from './tab.ts'

/** How a program gives it a task, and how it follows one. */
export function UseTab({ project_id, agent }: TabProps) {
  const tasks = `/api/v1/projects/${project_id}/agents/${agent.id}/tasks`
  const { input_schema } = agent.config
  const input = input_schema ? skeletonOf(input_schema) : 'Hello, agent'
  const literal = typeof input === 'string' ? `'${input}'` : JSON.stringify(input)
  const inputArgs = typeof input === 'string' ? quoted(input) : `--input-json ${quoted(JSON.stringify(input))}`
  const run = `cadre.tasks.run('${project_id}', '${agent.id}', { input: ${literal} })`
  return (
    <div className="space-y-4">
      <p className="max-w-3xl text-soft">
        Tasks are stored before the API responds, so a program that loses its connection can ask again. Callers need a
        key that may create tasks: <Link {...paths.keys({ panel: 'new' })}>create one</Link>.
      </p>
      <Panel title="Run a task and wait for the result">
        <div className="p-4">
          <p className="mb-3 max-w-3xl text-soft">
            <code>wait=30</code> waits up to 30 seconds. A longer task continues, and you read it by its id.
          </p>
          <Snippets
            texts={{
              curl: () => curlOf('POST', tasks, { query: { wait: 30 }, body: { input } }),
              sdk: () =>
                sdkOf(
                  `const { id } = await cadre.tasks.create('${project_id}', '${agent.id}', { input: ${literal} })`,
                  `const task = await cadre.tasks.wait('${project_id}', id)`,
                  `console.log(task.output?.${agent.config.output_schema ? 'data' : 'content'})`,
                ),
              cli: () =>
                shellOf(
                  `cadre tasks create ${agent.id} --project ${project_id} ${typeof input === 'string' ? '--input ' : ''}${inputArgs} --wait 30`,
                ),
            }}
          />
        </div>
      </Panel>
      <Panel title="Stream a task while it runs">
        <div className="p-4">
          <p className="mb-3 max-w-3xl text-soft">
            Server-sent events: every step, and text as it is generated. A broken connection resumes with{' '}
            <code>Last-Event-ID</code>; the SDK and the command line do this for you.
          </p>
          <Snippets
            texts={{
              curl: () => `${curlOf('POST', tasks, { body: { input } })} -N -H 'Accept: text/event-stream'`,
              sdk: () => sdkOf(`for await (const event of ${run}) console.log(event.type, event.data)`),
              cli: () => shellOf(`cadre tasks run ${agent.id} ${inputArgs} --project ${project_id}`),
            }}
          />
        </div>
      </Panel>
      <OtherClients project_id={project_id} agent={agent} />
    </div>
  )
}
