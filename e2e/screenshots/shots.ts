import type { Page } from 'playwright-core'
import type { Demo } from './demo.ts'

/** A page of the console as it is pictured. */
export interface Shot {
  name: string
  path: (demo: Demo) => string
  /** What is there once the page is ready. */
  until: string | RegExp
  /** Whether it is in the documentation. */
  isKept?: boolean
  before?: (page: Page) => Promise<void>
}

const of = (path: string) => (demo: Demo) => `/p/${demo.project}${path}`
const empty = (path: string) => (demo: Demo) => `/p/${demo.empty}${path}`
const at = (path: string) => () => path
const agent = (search: string) => (demo: Demo) => `/p/${demo.project}/agents/${demo.agents['support-desk']}${search}`
const task =
  (name: keyof Demo['tasks'], search = '') =>
  (demo: Demo) =>
    `/p/${demo.project}/tasks/${demo.tasks[name]}${search}`

/** Every page, by the part of the console that it is in. A group is a folder of pictures, of at most 25. */
export const shots: Record<string, Shot[]> = {
  agents: [
    { name: 'home', path: of(''), until: 'Latest tasks', isKept: true },
    { name: 'agents', path: of('/agents'), until: 'support-desk', isKept: true },
    { name: 'agent', path: agent(''), until: 'Instructions', isKept: true },
    { name: 'agent-tasks', path: agent('?tab=tasks'), until: 'Do you ship to Norway?' },
    { name: 'agent-logs', path: agent('?tab=logs'), until: 'All, with filters' },
    { name: 'agent-trends', path: agent('?tab=metrics'), until: 'Task duration' },
    { name: 'agent-versions', path: agent('?tab=config&version=1'), until: 'From version', isKept: true },
    { name: 'agent-webhooks', path: agent('?tab=webhooks'), until: 'Webhooks' },
    { name: 'agent-access', path: agent('?tab=access'), until: 'Access' },
    { name: 'agent-activity', path: agent('?tab=activity'), until: 'changed the agent' },
    { name: 'agent-use', path: agent('?tab=use'), until: 'curl' },
    { name: 'agent-edit', path: (demo) => `${agent('')(demo)}/edit`, until: 'Model' },
    { name: 'agent-new', path: of('/agents/new'), until: 'Model' },
  ],
  tools: [
    { name: 'tools', path: of('/tools'), until: 'order_lookup' },
    { name: 'tool', path: (demo) => of(`/tools/${demo.tools.order_lookup}`)(demo), until: 'order-desk' },
    { name: 'tool-drift', path: (demo) => of(`/tools/${demo.tools.warehouse}`)(demo), until: 'The server changed' },
    { name: 'tool-client', path: (demo) => of(`/tools/${demo.tools.open_ticket}`)(demo), until: 'help-desk' },
    { name: 'tool-new', path: of('/tools/new'), until: 'Description' },
    { name: 'tool-edit', path: (demo) => of(`/tools/${demo.tools.order_lookup}/edit`)(demo), until: 'Description' },
    { name: 'credentials', path: of('/credentials'), until: 'SHOP_API_KEY' },
    { name: 'credential', path: (demo) => of(`/credentials/${demo.credentials.SHOP_API_KEY}`)(demo), until: 'Rotate' },
    {
      name: 'credential-oauth',
      path: (demo) => of(`/credentials/${demo.credentials.CALENDAR}`)(demo),
      until: 'Connect',
    },
    { name: 'credential-new', path: of('/credentials?panel=new'), until: 'Save credential' },
  ],
  triggers: [
    { name: 'schedules', path: of('/schedules'), until: 'Product texts' },
    { name: 'schedule', path: (demo) => of(`/schedules/${demo.schedule}`)(demo), until: 'History' },
    { name: 'schedule-new', path: of('/schedules?panel=new'), until: 'Create schedule' },
    { name: 'triggers', path: of('/triggers'), until: 'New product text' },
    { name: 'trigger', path: (demo) => of(`/triggers/${demo.trigger}`)(demo), until: 'Deliveries' },
    { name: 'trigger-new', path: of('/triggers?panel=new'), until: 'Create trigger' },
    { name: 'files', path: of('/files'), until: 'returns-policy.md' },
    { name: 'playground', path: of('/playground'), until: 'Playground' },
    { name: 'start', path: of('/start'), until: 'First' },
    { name: 'connect', path: of('/connect'), until: 'OpenAI SDK' },
  ],
  tasks: [
    { name: 'tasks', path: of('/tasks'), until: 'Do you ship to Norway?', isKept: true },
    { name: 'task', path: task('completed'), until: 'qualifies for a refund', isKept: true },
    { name: 'task-waterfall', path: task('delegated', '?view=waterfall'), until: 'delegate_translator', isKept: true },
    { name: 'task-attempts', path: task('completed', '?view=attempts'), until: 'Attempt' },
    { name: 'task-failed', path: task('failed'), until: 'invoice', isKept: true },
    { name: 'task-waiting', path: task('waiting'), until: 'Approve' },
    { name: 'task-running', path: task('running'), until: 'Sum up yesterday.' },
    { name: 'task-step', path: task('completed', '?step=1'), until: 'Retry from this step' },
    { name: 'task-logs', path: task('completed', '?view=logs'), until: 'Open in Logs' },
    { name: 'task-events', path: task('completed', '?view=events'), until: 'task.completed' },
    {
      name: 'tasks-compared',
      path: ({ project, tasks }) => `/p/${project}/tasks/compare?left=${tasks.completed}&right=${tasks.other}`,
      until: 'Both are the same.',
      // Markdown is laid out by a part of the console that comes later.
      before: (page) => page.locator('main table').first().waitFor(),
    },
  ],
  observe: [
    { name: 'threads', path: of('/threads'), until: 'Where is order A-1042?' },
    { name: 'thread', path: (demo) => of(`/threads/${demo.thread}`)(demo), until: 'was delivered on Monday' },
    { name: 'approvals', path: of('/approvals'), until: 'Approve', isKept: true },
    { name: 'tool-calls', path: of('/tool-calls'), until: 'open_ticket' },
    { name: 'logs', path: of('/logs'), until: /[1-9]\d* lines/ },
    { name: 'metrics', path: of('/metrics?range=7d'), until: 'Task duration', isKept: true },
    { name: 'usage', path: of('/usage?group=model'), until: 'Cost by day', isKept: true },
    { name: 'budgets', path: of('/usage?tab=budgets'), until: 'Warns at' },
    { name: 'budget-new', path: of('/usage?tab=budgets&panel=budget'), until: 'Set budget' },
    { name: 'limits', path: of('/usage?tab=limits'), until: 'Refused with 429' },
  ],
  organization: [
    { name: 'projects', path: at('/projects'), until: 'storefront' },
    { name: 'members', path: at('/settings/members'), until: 'kim@example.com' },
    { name: 'member-invite', path: at('/settings/members?panel=invite'), until: 'Role' },
    { name: 'model-providers', path: at('/settings/model-providers'), until: 'builtin/script' },
    { name: 'keys', path: at('/settings/keys'), until: 'checkout' },
    { name: 'key-new', path: at('/settings/keys?panel=new'), until: 'Read only' },
    { name: 'webhooks', path: at('/webhooks'), until: '/down' },
    { name: 'webhook', path: ({ webhook }) => `/webhooks/${webhook}`, until: '503' },
    {
      name: 'webhook-delivery',
      path: ({ webhook, delivery }) => `/webhooks/${webhook}/deliveries/${delivery}`,
      until: 'Request and response',
    },
    { name: 'webhook-new', path: at('/webhooks?panel=new'), until: 'Create webhook' },
    { name: 'apps', path: at('/settings/apps'), until: 'Deny unregistered apps' },
    { name: 'app-new', path: at('/settings/apps?panel=new'), until: 'Redirect' },
    { name: 'audit', path: at('/settings/audit'), until: /agent\.(created|updated)/ },
    { name: 'requests', path: at('/settings/requests'), until: 'Requests left' },
    { name: 'system', path: at('/settings/system'), until: 'Configuration' },
    { name: 'sessions', path: at('/settings/sessions'), until: 'Sessions' },
    { name: 'preferences', path: at('/settings/preferences'), until: 'Dates and numbers' },
    { name: 'missing', path: at('/nowhere'), until: 'Page not found' },
    {
      name: 'command-menu',
      path: of('/agents'),
      until: 'support-desk',
      isKept: true,
      async before(page) {
        await page.keyboard.press('Control+k')
        await page.getByRole('listbox').waitFor()
      },
    },
    {
      name: 'keys-help',
      path: of('/agents'),
      until: 'support-desk',
      async before(page) {
        await page.keyboard.press('?')
        await page.getByRole('dialog').waitFor()
      },
    },
  ],
  empty: [
    '',
    '/agents',
    '/tools',
    '/credentials',
    '/schedules',
    '/triggers',
    '/files',
    '/playground',
    '/start',
    '/tasks',
    '/threads',
    '/approvals',
    '/tool-calls',
    '/logs',
    '/metrics',
    '/usage',
    '/usage?tab=budgets',
  ].map((path) => ({
    name: `empty-${path.replace('?tab=', '-').slice(1) || 'home'}`,
    path: empty(path),
    until:
      /^(Home|Agents|Tools|Credentials|Schedules|Triggers|Files|Playground|First|Tasks|Threads|Approvals|Tool calls|Logs|Metrics|Usage)/,
  })),
}
