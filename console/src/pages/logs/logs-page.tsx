import { localZone } from '#contract/accounts/preference-choices.ts'
import { formatCount } from '../../format.ts'
import { useEffect, useState } from 'react'
import { projectLogSearch } from '#contract/core/limits.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox } from '../../ui/forms/field.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { fullHeight } from '../../ui/page.tsx'
import { useSearchState } from '../../search-state.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { LogFile } from './log-file.tsx'
import { LogFilterBar } from './log-filter-bar.tsx'
import { useLogFilter, type LogWords } from './log-filter.ts'
import { LogLines } from './log-lines.tsx'
import { useNewestAgents } from '../../agents/agent-names.ts'
import { useLogStore } from './use-log-store.ts'
import { usePreference, zoneBesideUtc } from '../../preferences.ts'

/** What agents wrote, as they write it, and all of it before. */
export function LogsPage() {
  const { project } = usePathIds()
  const [params, setParams] = useSearchState<LogWords>()
  const agents = useNewestAgents(project)
  const [preferred] = usePreference('time_zone')
  // The zone in the address wins over that of Preferences, so that a link shows the same times to all.
  const zone = params.zone === undefined ? preferred : params.zone === 'utc' ? 'UTC' : zoneBesideUtc()
  const agent = typeof params.agent === 'string' ? params.agent : undefined
  const filter = useLogFilter(project, agent, params)
  // To a period that is over nothing comes.
  const isOver = filter.end_time !== undefined && Date.parse(filter.end_time) < Date.now()
  const isTailing = params.tail !== 'off' && !isOver
  const store = useLogStore(filter, isTailing)
  const [fileError, setFileError] = useState<unknown>()
  // A telephone has no room for all controls.
  const [hasOptions, showOptions] = useState(false)
  const error = fileError ?? store.error ?? agents.error
  useEffect(() => {
    document.title = 'Logs · Cadre'
  }, [])
  const { project: _, agent: __, ...asked } = filter
  const isNarrowed = (filter.level ?? filter.search ?? filter.task_id) !== undefined

  return (
    <div className={fullHeight}>
      <header className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line p-3 md:px-5">
        <h1 className="mr-2">Logs</h1>
        <LogFilterBar agent={agent} project={project} filters={params} zone={zone} change={setParams} />
        <Button
          className="sm:hidden"
          aria-expanded={hasOptions}
          aria-controls="log-options"
          onClick={() => showOptions(!hasOptions)}
        >
          {hasOptions ? 'Hide options' : 'View options'}
        </Button>
        <div
          id="log-options"
          className={`flex flex-wrap items-center gap-2 lg:ml-auto ${hasOptions ? '' : 'max-sm:hidden'}`}
        >
          <Choices
            label="Tail"
            value={isTailing ? 'on' : 'off'}
            options={[
              ['on', 'Live'],
              ['off', 'Off'],
            ]}
            onChange={(next) => setParams({ tail: next === 'off' ? 'off' : undefined }, { replace: true })}
          />
          <Choices
            label="Time zone"
            value={zone === 'UTC' ? 'utc' : 'local'}
            options={[
              ['local', zoneBesideUtc() === localZone ? 'Local' : zoneBesideUtc()],
              ['utc', 'UTC'],
            ]}
            onChange={(next) => setParams({ zone: next === 'utc' ? 'utc' : 'local' }, { replace: true })}
          />
          <Choices
            label="Density"
            value={params.density === 'roomy' ? 'roomy' : 'dense'}
            options={[
              ['dense', 'Dense'],
              ['roomy', 'Roomy'],
            ]}
            onChange={(next) => setParams({ density: next === 'roomy' ? 'roomy' : undefined }, { replace: true })}
          />
          <Checkbox
            label="Wrap"
            className="text-sm"
            checked={params.wrap === true}
            onChange={({ target }) => setParams({ wrap: target.checked || undefined }, { replace: true })}
          />
          <CopyAsCurl
            path={`/api/v1/projects/${project}${agent === undefined ? '' : `/agents/${agent}`}/logs`}
            query={asked}
          />
          <LogFile store={store} onError={setFileError} />
        </div>
      </header>
      {agent === undefined && filter.search !== undefined && (
        <p className="shrink-0 border-b border-line px-3 py-1 text-xs text-soft md:px-5">
          The text is searched in the newest {formatCount(projectLogSearch.entries)} lines that match the other filters.
          Choose an agent to search all of its lines.
        </p>
      )}
      {error != null && (
        <div className="shrink-0 p-3">
          <ErrorBox error={error} />
        </div>
      )}
      {agents.data?.length === 0 && (
        <div className="p-3 md:p-5">
          <EmptyState
            title="No agents yet"
            actions={
              <ButtonLink kind="primary" {...paths.newAgent(project)}>
                Create an agent
              </ButtonLink>
            }
          >
            <p>Agents log what they do here. Create an agent and run a task.</p>
          </EmptyState>
        </div>
      )}
      {!store.isRead && store.error === undefined && agents.data?.length !== 0 && (
        <p role="status" className="p-4 text-sm text-soft">
          Loading the log…
        </p>
      )}
      {store.isRead && store.count === 0 && agents.data?.length !== 0 && (
        <div className="p-3 md:p-5">
          <EmptyState title="No matching lines">
            <p>An agent writes a line when a task begins and ends, when a tool is refused, and when something fails.</p>
          </EmptyState>
        </div>
      )}
      {store.isRead && store.count > 0 && (
        <LogLines
          // Another list begins anew, at its end.
          key={JSON.stringify([filter, params.density])}
          store={store}
          isTailing={isTailing}
          isWrapped={params.wrap === true}
          zone={zone}
          isRoomy={params.density === 'roomy'}
          at={typeof params.at === 'string' ? params.at : undefined}
          onAt={(at) => setParams({ at }, { replace: true })}
          onTask={(task) => setParams({ task })}
          aroundOf={
            isNarrowed
              ? (at) => {
                  const { since, from, to, wrap, zone, density } = params
                  return { agent, at, since, from, to, wrap, zone, density }
                }
              : undefined
          }
        />
      )}
    </div>
  )
}
