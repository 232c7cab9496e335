import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { agentParameter, projectParameter } from '../core/schemas.ts'

/** Frames of a project's stream that are not events of its tasks. */
export const projectFrameTypes = ['project.snapshot', 'agent.status'] as const
export type ProjectFrameType = (typeof projectFrameTypes)[number]

const task_id = 'task_01jcm3x5v8f9a2b4c6d8e0g2h4'
const frames: [type: string, id: string, data: object][] = [
  [
    'project.snapshot',
    '1795167000.815.',
    {
      project_id: projectParameter.example,
      type: 'project.snapshot',
      created_at: '2026-11-20T09:30:00.000Z',
      data: { tasks: { queued: 3, running: 1, waiting: 0 }, agents: { running: 2 }, resumed: false },
    },
  ],
  [
    'task.completed',
    '1795167001.821.819',
    {
      sequence: 7,
      task_id,
      agent_id: agentParameter.example,
      type: 'task.completed',
      status: 'completed',
      created_at: '2026-11-20T09:30:01.210Z',
    },
  ],
]
const example = [
  'retry: 1000\n\n',
  ...frames.map(([type, id, data]) => `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`),
].join('')

export const streamProjectEvents = defineOperation({
  id: 'streamProjectEvents',
  command: 'projects watch',
  sdk: 'projects.rawStream',
  sdk_note: 'Returns the raw response; `stream` parses it.',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/events/stream',
  error_format: 'agents',
  tag: 'Tasks',
  credentials: anyCredential,
  extension: true,
  params: { project_id: projectParameter },
  summary: 'Stream a project',
  description:
    'Server-sent events for a dashboard: `project.snapshot`, then every event of every task, reduced to its type and the task, its agent and its state. After a lost connection, `Last-Event-ID` resumes the stream for up to an hour. The stream does not end.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  responses: [{ status: 200, description: 'The stream.', media_type: 'text/event-stream', example }],
  problems: ['project_not_found'],
})

export const projectEventOperations: Operation[] = [streamProjectEvents] as Operation[]
