import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router'
import type { QueryClient } from '@tanstack/react-query'
import type { ComponentType } from 'react'
import { basePath } from './api/client.ts'
import type { Search } from './search-text.ts'
import { FailedPage, MissingPage } from './shell/failed-page.tsx'
import { ProjectScope } from './shell/project-scope.tsx'
import { Shell } from './shell/shell.tsx'
import { UnloadedError } from './shell/unloaded-error.ts'
import { Skeleton } from './ui/skeleton.tsx'

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: () => (
    <Shell>
      <Outlet />
    </Shell>
  ),
  notFoundComponent: MissingPage,
  errorComponent: FailedPage,
  validateSearch: (search: Record<string, unknown>): Search => search as Search,
})

type Load = () => Promise<{ default: ComponentType }>

/**
 * The page, or an error of our own: at the browser's, the router would load the whole console again, which is gone while the service
 * is away.
 */
function loaded(load: Load) {
  return lazyRouteComponent(async () => {
    try {
      return await load()
    } catch (cause) {
      throw new UnloadedError(cause)
    }
  })
}

/** A page, loaded when it is first opened. */
function page<Path extends string>(path: Path, load: Load) {
  return createRoute({ getParentRoute: () => root, path, component: loaded(load) })
}

const project = createRoute({ getParentRoute: () => root, path: '/p/$project_id', component: ProjectScope })

/** A page of one project. */
function projectPage<Path extends string>(path: Path, load: Load) {
  return createRoute({ getParentRoute: () => project, path, component: loaded(load) })
}

const tree = root.addChildren([
  page('/', () => import('./pages/landing.tsx')),
  page('/projects', () => import('./pages/projects/projects.tsx')),
  page('/webhooks', () => import('./pages/webhooks/webhooks.tsx')),
  page('/webhooks/$webhook_id', () => import('./pages/webhooks/webhook.tsx')),
  page('/webhooks/$webhook_id/deliveries/$delivery_id', () => import('./pages/webhooks/delivery.tsx')),
  page('/settings/model-providers', () => import('./pages/settings/model-providers/model-providers.tsx')),
  page('/settings/keys', () => import('./pages/settings/keys.tsx')),
  page('/settings/sessions', () => import('./pages/settings/sessions.tsx')),
  page('/settings/apps', () => import('./pages/settings/apps.tsx')),
  page('/settings/audit', () => import('./pages/settings/audit/audit.tsx')),
  page('/settings/members', () => import('./pages/settings/members.tsx')),
  page('/settings/requests', () => import('./pages/settings/system/requests.tsx')),
  page('/settings/system', () => import('./pages/settings/system/system.tsx')),
  page('/settings/preferences', () => import('./pages/settings/preferences.tsx')),
  project.addChildren([
    projectPage('/', () => import('./pages/home/home.tsx')),
    projectPage('/connect', () => import('./pages/onboarding/connect.tsx')),
    projectPage('/start', () => import('./pages/onboarding/onboarding.tsx')),
    projectPage('/agents', () => import('./pages/agents/agents.tsx')),
    projectPage('/agents/new', () => import('./pages/agent-form/new-agent.tsx')),
    projectPage('/agents/$agent_id', () => import('./pages/agent/agent.tsx')),
    projectPage('/agents/$agent_id/edit', () => import('./pages/agent-form/edit-agent.tsx')),
    projectPage('/tasks', () => import('./pages/tasks/tasks.tsx')),
    projectPage('/tasks/compare', () => import('./pages/compare-tasks/compare-tasks.tsx')),
    projectPage('/tasks/$task_id', () => import('./pages/task/task.tsx')),
    projectPage('/tool-calls', () => import('./pages/tool-calls/tool-calls.tsx')),
    projectPage('/tools', () => import('./pages/tools/tools.tsx')),
    projectPage('/tools/new', () => import('./pages/tools/new-tool.tsx')),
    projectPage('/tools/$tool_id', () => import('./pages/tools/tool.tsx')),
    projectPage('/tools/$tool_id/edit', () => import('./pages/tools/edit-tool.tsx')),
    projectPage('/credentials', () => import('./pages/credentials/credentials.tsx')),
    projectPage('/credentials/$credential_id', () => import('./pages/credentials/credential.tsx')),
    projectPage('/schedules', () => import('./pages/schedules/schedules.tsx')),
    projectPage('/schedules/$schedule_id', () => import('./pages/schedules/schedule.tsx')),
    projectPage('/threads', () => import('./pages/threads/threads.tsx')),
    projectPage('/threads/$thread_id', () => import('./pages/threads/thread.tsx')),
    projectPage('/files', () => import('./pages/files/files.tsx')),
    projectPage('/approvals', () => import('./pages/approvals/approvals.tsx')),
    projectPage('/triggers', () => import('./pages/triggers/triggers.tsx')),
    projectPage('/triggers/$trigger_id', () => import('./pages/triggers/trigger.tsx')),
    projectPage('/logs', () => import('./pages/logs/logs.tsx')),
    projectPage('/metrics', () => import('./pages/metrics/metrics.tsx')),
    projectPage('/usage', () => import('./pages/usage/usage.tsx')),
    projectPage('/playground', () => import('./pages/playground/playground.tsx')),
  ]),
])

export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: basePath,
    context: { queries },
    defaultPreload: 'intent',
    defaultPendingComponent: () => <Skeleton />,
    defaultErrorComponent: FailedPage,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
