import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, type LinkProps } from '@tanstack/react-router'
import {
  Activity,
  AppWindow,
  ArrowLeftRight,
  Bot,
  CalendarClock,
  ChartLine,
  CircleHelp,
  Cpu,
  File as FileIcon,
  FileClock,
  FlaskConical,
  FolderKanban,
  Gauge,
  Hammer,
  Home,
  Inbox,
  KeyRound,
  ListChecks,
  Lock,
  Menu as MenuIcon,
  MessagesSquare,
  MonitorSmartphone,
  Plug,
  ScrollText,
  Search,
  Server,
  Settings,
  Users,
  Webhook,
  Wrench,
  X,
  Zap,
  type LucideIcon,
} from 'lucide-react'
import { useEffect, useMemo, useState, type ReactNode } from 'react'
import { usePendingApprovals, userQuery, useWaiting } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { preferencesQuery } from '../preferences.ts'
import { IconButton } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { liveSlot } from './live-badge.tsx'
import { AccountMenu } from './account-menu.tsx'
import { CommandMenu } from './command-menu.tsx'
import { useIsStarted } from './first-steps.ts'
import { useOpenProject } from './open-project.ts'
import { ProjectSwitcher } from './project-switcher.tsx'
import { ServiceWatch } from './service-watch.tsx'
import { ShortcutList } from './shortcut-list.tsx'
import { SignedOutDialog } from './signed-out-dialog.tsx'
import { menuKeys, useShortcuts } from './shortcuts.ts'

interface Entry {
  label: string
  icon: LucideIcon
  link: LinkProps
  count?: number
  isExact?: boolean
}

/** What is around every page: where one is, where one can go, and what waits. */
export function Shell({ children }: { children: ReactNode }) {
  const project_id = useOpenProject()
  const { data: user } = useQuery(userQuery)
  useQuery(preferencesQuery)
  const [open, setOpen] = useState<'menu' | 'help' | 'navigation' | undefined>()
  const { pathname } = useLocation()
  const openers = useMemo(() => ({ menu: () => setOpen('menu'), help: () => setOpen('help') }), [])
  useShortcuts(openers)
  useEffect(() => setOpen(undefined), [pathname])
  const close = (): void => setOpen(undefined)

  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[14.5rem_1fr]">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-panel focus:p-2">
        Skip to content
      </a>
      <aside className="sticky top-0 hidden h-dvh flex-col overflow-y-auto border-r border-line bg-panel lg:flex">
        <Navigation project_id={project_id} />
      </aside>
      <div className="flex min-w-0 flex-col">
        <div className="sticky top-0 z-30 bg-panel">
          <div className="flex h-12 items-center gap-2 border-b border-line px-3">
            <IconButton label="Navigation" className="lg:hidden" onClick={() => setOpen('navigation')}>
              <MenuIcon size={18} aria-hidden />
            </IconButton>
            <ProjectSwitcher project_id={project_id} />
            <span className="flex-1" />
            <span id={liveSlot} className="inline-flex min-h-8 items-center" />
            <IconButton label={`Search and commands (${menuKeys})`} onClick={openers.menu}>
              <Search size={16} aria-hidden />
            </IconButton>
            <IconButton label="Keyboard shortcuts (?)" className="max-sm:hidden" onClick={openers.help}>
              <CircleHelp size={16} aria-hidden />
            </IconButton>
            <AccountMenu name={user?.name} />
          </div>
          <ServiceWatch />
        </div>
        <main id="main" tabIndex={-1} className="w-full max-w-[100rem] flex-1 p-4 outline-none sm:p-6">
          {children}
        </main>
      </div>
      {open === 'navigation' && (
        <div className="fixed inset-0 z-40 lg:hidden">
          <button
            type="button"
            aria-label="Close the navigation"
            className="absolute inset-0 bg-[rgb(10_10_20/45%)]"
            onClick={close}
          />
          <aside className="absolute inset-y-0 left-0 flex w-64 flex-col overflow-y-auto border-r border-line bg-panel">
            <span className="absolute top-2 right-2">
              <IconButton label="Close" onClick={close}>
                <X size={16} aria-hidden />
              </IconButton>
            </span>
            <Navigation project_id={project_id} />
          </aside>
        </div>
      )}
      <SignedOutDialog />
      <CommandMenu isOpen={open === 'menu'} close={close} />
      <Dialog isOpen={open === 'help'} close={close} title="Keyboard shortcuts">
        <ShortcutList />
      </Dialog>
    </div>
  )
}

function Navigation({ project_id }: { project_id: string | undefined }) {
  const pending = usePendingApprovals(project_id)
  const waiting = useWaiting(project_id)
  const isStarted = useIsStarted(project_id)
  const home: Entry[] =
    project_id === undefined ? [] : [{ label: 'Home', icon: Home, link: paths.home(project_id), isExact: true }]
  const build: Entry[] =
    project_id === undefined
      ? []
      : [
          { label: 'Agents', icon: Bot, link: paths.agents(project_id) },
          { label: 'Tools', icon: Wrench, link: paths.tools(project_id), count: waiting.tools },
          { label: 'Credentials', icon: Lock, link: paths.credentials(project_id), count: waiting.credentials },
          { label: 'Schedules', icon: CalendarClock, link: paths.schedules(project_id) },
          { label: 'Triggers', icon: Zap, link: paths.triggers(project_id) },
          { label: 'Files', icon: FileIcon, link: paths.files(project_id) },
          { label: 'Playground', icon: FlaskConical, link: paths.playground(project_id) },
          { label: 'Connect', icon: Plug, link: paths.connect(project_id) },
          ...(isStarted ? [] : [{ label: 'First steps', icon: Activity, link: paths.start(project_id) }]),
        ]
  const observe: Entry[] =
    project_id === undefined
      ? []
      : [
          { label: 'Tasks', icon: ListChecks, link: paths.tasks(project_id) },
          { label: 'Threads', icon: MessagesSquare, link: paths.threads(project_id) },
          { label: 'Approvals', icon: Inbox, link: paths.approvals(project_id), count: pending },
          { label: 'Tool calls', icon: Hammer, link: paths.toolCalls(project_id), count: waiting.tool_calls },
          { label: 'Logs', icon: ScrollText, link: paths.logs(project_id) },
          { label: 'Metrics', icon: ChartLine, link: paths.metrics(project_id) },
          { label: 'Usage and limits', icon: Gauge, link: paths.usage(project_id) },
        ]
  const ofOrganization: Entry[] = [
    { label: 'Projects', icon: FolderKanban, link: paths.projects() },
    { label: 'Members', icon: Users, link: paths.members() },
    { label: 'Model providers', icon: Cpu, link: paths.modelProviders() },
    { label: 'API keys', icon: KeyRound, link: paths.keys() },
    { label: 'Webhooks', icon: Webhook, link: paths.webhooks() },
    { label: 'OAuth apps', icon: AppWindow, link: paths.apps() },
    { label: 'Audit log', icon: FileClock, link: paths.audit() },
    { label: 'Request log', icon: ArrowLeftRight, link: paths.requests() },
    { label: 'System', icon: Server, link: paths.system() },
    { label: 'Sessions', icon: MonitorSmartphone, link: paths.sessions() },
    { label: 'Preferences', icon: Settings, link: paths.preferences() },
  ]
  return (
    <nav aria-label="Main" className="flex flex-1 flex-col gap-4 p-3">
      <Link
        to="/"
        className="flex h-7 items-center gap-2 px-2 text-lg font-semibold text-text no-underline hover:text-text"
      >
        <img src="icon.svg" alt="" width={20} height={20} />
        Cadre
      </Link>
      {project_id !== undefined && (
        <>
          <Entries entries={home} />
          <Entries label="Build" entries={build} />
          <Entries label="Observe" entries={observe} />
        </>
      )}
      <Entries label="Organization" entries={ofOrganization} />
    </nav>
  )
}

function Entries({ label, entries }: { label?: string; entries: readonly Entry[] }) {
  return (
    <div>
      {label !== undefined && <p className="px-2 pb-1 text-xs font-medium text-soft">{label}</p>}
      <ul {...(label === undefined ? {} : { 'aria-label': label })}>
        {entries.map(({ label, icon: Icon, link, count, isExact = false }) => (
          <li key={label}>
            <Link
              {...link}
              activeOptions={{ exact: isExact, includeSearch: false }}
              className="flex min-h-8 items-center gap-2.5 rounded-md px-2 text-text no-underline hover:bg-quiet hover:text-text aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium max-lg:min-h-10"
            >
              <Icon size={16} aria-hidden className="text-soft" />
              <span className="flex-1">{label}</span>
              {count !== undefined && count > 0 && (
                <span className="rounded-full bg-warn-soft px-1.5 text-sm font-medium text-warn">
                  {count}
                  <span className="sr-only"> waiting</span>
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  )
}
