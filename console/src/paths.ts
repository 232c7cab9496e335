import type { LinkProps } from '@tanstack/react-router'

/** Every link of the console. A page that another one leads to is named here, and nowhere else. */
export const paths = {
  home: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id',
    params: { project_id },
    search: search as never,
  }),
  start: (project_id: string): LinkProps => ({ to: '/p/$project_id/start', params: { project_id } }),
  connect: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/connect',
    params: { project_id },
    search: search as never,
  }),
  projects: (search: object = {}): LinkProps => ({ to: '/projects', search: search as never }),
  agents: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/agents',
    params: { project_id },
    search: search as never,
  }),
  newAgent: (project_id: string): LinkProps => ({ to: '/p/$project_id/agents/new', params: { project_id } }),
  agent: (project_id: string, agent_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/agents/$agent_id',
    params: { project_id, agent_id },
    search: search as never,
  }),
  editAgent: (project_id: string, agent_id: string): LinkProps => ({
    to: '/p/$project_id/agents/$agent_id/edit',
    params: { project_id, agent_id },
  }),
  tasks: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tasks',
    params: { project_id },
    search: search as never,
  }),
  task: (project_id: string, task_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tasks/$task_id',
    params: { project_id, task_id },
    search: search as never,
  }),
  compareTasks: (project_id: string, search: { left: string; right: string }): LinkProps => ({
    to: '/p/$project_id/tasks/compare',
    params: { project_id },
    search: search as never,
  }),
  toolCalls: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tool-calls',
    params: { project_id },
    search: search as never,
  }),
  approvals: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/approvals',
    params: { project_id },
    search: search as never,
  }),
  triggers: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/triggers',
    params: { project_id },
    search: search as never,
  }),
  trigger: (project_id: string, trigger_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/triggers/$trigger_id',
    params: { project_id, trigger_id },
    search: search as never,
  }),
  tools: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tools',
    params: { project_id },
    search: search as never,
  }),
  newTool: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tools/new',
    params: { project_id },
    search: search as never,
  }),
  tool: (project_id: string, tool_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/tools/$tool_id',
    params: { project_id, tool_id },
    search: search as never,
  }),
  editTool: (project_id: string, tool_id: string): LinkProps => ({
    to: '/p/$project_id/tools/$tool_id/edit',
    params: { project_id, tool_id },
  }),
  credentials: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/credentials',
    params: { project_id },
    search: search as never,
  }),
  credential: (project_id: string, credential_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/credentials/$credential_id',
    params: { project_id, credential_id },
    search: search as never,
  }),
  schedules: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/schedules',
    params: { project_id },
    search: search as never,
  }),
  schedule: (project_id: string, schedule_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/schedules/$schedule_id',
    params: { project_id, schedule_id },
    search: search as never,
  }),
  threads: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/threads',
    params: { project_id },
    search: search as never,
  }),
  thread: (project_id: string, thread_id: string): LinkProps => ({
    to: '/p/$project_id/threads/$thread_id',
    params: { project_id, thread_id },
  }),
  files: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/files',
    params: { project_id },
    search: search as never,
  }),
  logs: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/logs',
    params: { project_id },
    search: search as never,
  }),
  metrics: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/metrics',
    params: { project_id },
    search: search as never,
  }),
  usage: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/usage',
    params: { project_id },
    search: search as never,
  }),
  playground: (project_id: string, search: object = {}): LinkProps => ({
    to: '/p/$project_id/playground',
    params: { project_id },
    search: search as never,
  }),
  webhooks: (search: object = {}): LinkProps => ({ to: '/webhooks', search: search as never }),
  webhook: (webhook_id: string, search: object = {}): LinkProps => ({
    to: '/webhooks/$webhook_id',
    params: { webhook_id },
    search: search as never,
  }),
  delivery: (webhook_id: string, delivery_id: string): LinkProps => ({
    to: '/webhooks/$webhook_id/deliveries/$delivery_id',
    params: { webhook_id, delivery_id },
  }),
  modelProviders: (search: object = {}): LinkProps => ({ to: '/settings/model-providers', search: search as never }),
  keys: (search: object = {}): LinkProps => ({ to: '/settings/keys', search: search as never }),
  sessions: (): LinkProps => ({ to: '/settings/sessions' }),
  apps: (search: object = {}): LinkProps => ({ to: '/settings/apps', search: search as never }),
  audit: (search: object = {}): LinkProps => ({ to: '/settings/audit', search: search as never }),
  members: (search: object = {}): LinkProps => ({ to: '/settings/members', search: search as never }),
  requests: (search: object = {}): LinkProps => ({ to: '/settings/requests', search: search as never }),
  system: (search: object = {}): LinkProps => ({ to: '/settings/system', search: search as never }),
  preferences: (): LinkProps => ({ to: '/settings/preferences' }),
} as const
