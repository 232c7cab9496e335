import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { AgentVersion } from '#sdk/types.ts'
import { Maker } from '../../agents/maker.tsx'
import { DiffTable } from '../../agents/diff-table.tsx'
import { withoutValues } from '../../agents/variables.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { TextDiff } from '../../ui/texts/numbered-text.tsx'
import { Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import type { TabProps } from './tab.ts'

const pageSize = 20

/** What it is made of, what that was in each version, and the way back. */
export function ConfigTab({ project_id, agent }: TabProps) {
  const [search, change] = useSearchState<{
    version?: number | string
    with?: number | string
    offset?: number | string
  }>()
  const queries = useQueryClient()
  const [rollingTo, rollTo] = useState<number>()
  const mayNot = useDisabledReason('agents')
  const undo = async (version: number): Promise<void> => {
    try {
      await api.agents.rollback(project_id, agent.id, { version })
      tell(`The agent is as in version ${version} again`)
    } catch (failure) {
      tellFailure('The roll back could not be undone', failure)
    }
    await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
  }
  const offset = Number(search.offset ?? 0)
  const open = search.version === undefined ? undefined : Number(search.version)
  const versions = useQuery({
    queryKey: ['project', project_id, 'agents', 'versions', agent.id, offset],
    queryFn: () => api.agents.listVersions(project_id, agent.id, { limit: pageSize, offset }).page({ offset }),
  })
  const old = useQuery({
    queryKey: ['project', project_id, 'agents', 'version', agent.id, open],
    queryFn: () => api.agents.getVersion(project_id, agent.id, open ?? 0),
    enabled: open !== undefined,
  })
  const against = search.with === undefined ? undefined : Number(search.with)
  const other = useQuery({
    queryKey: ['project', project_id, 'agents', 'version', agent.id, against],
    queryFn: () => api.agents.getVersion(project_id, agent.id, against ?? 0),
    enabled: open !== undefined && against !== undefined,
  })
  // One that an address names may be on another page of the list.
  const known = new Set([
    ...(against === undefined ? [] : [against]),
    ...(versions.data?.items.map(({ version }) => version) ?? []),
  ])
  return (
    <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-2">
      <Panel
        title="Current configuration"
        actions={
          <ButtonLink {...paths.editAgent(project_id, agent.id)} reason={mayNot}>
            Edit
          </ButtonLink>
        }
      >
        <div className="space-y-2 p-4">
          <CodeBlock text={JSON.stringify(withoutValues(agent.config), undefined, 2)} label="Copy the configuration" />
          {agent.config.environment_variables && (
            <p className="text-sm text-soft">Values of environment variables are not shown.</p>
          )}
        </div>
      </Panel>
      <Panel title="Versions">
        <ErrorBox error={versions.error ?? old.error} retry={() => void versions.refetch()} />
        {!versions.data && !versions.error && <Skeleton />}
        <ul>
          {versions.data?.items.map((version) => (
            <li key={version.version} className="border-b border-line last:border-0">
              <VersionLine
                version={version}
                agent_id={agent.id}
                isOpen={open === version.version}
                toggle={() =>
                  change({ version: open === version.version ? undefined : version.version, with: undefined })
                }
                rollBack={() => rollTo(version.version)}
              />
              {open === version.version && old.data && (
                <VersionDiff
                  old={old.data}
                  other={against === undefined ? { ...agent, version: undefined } : other.data}
                  choices={[...known].filter((one) => one !== version.version)}
                  against={against}
                  compareWith={(next) => change({ with: next })}
                />
              )}
            </li>
          ))}
        </ul>
        {versions.data && (
          <Pager
            offset={offset}
            limit={pageSize}
            total={versions.data.total}
            noun="versions"
            go={(offset) => change({ offset: offset || undefined, version: undefined })}
          />
        )}
      </Panel>
      <ConfirmDialog
        isOpen={rollingTo !== undefined}
        close={() => rollTo(undefined)}
        kind="primary"
        title={`Roll back to version ${rollingTo}`}
        action="Roll back"
        run={async () => {
          const [was] = (await api.agents.listVersions(project_id, agent.id, { limit: 1 }).page()).items
          await api.agents.rollback(project_id, agent.id, { version: rollingTo ?? 0 })
          change({ version: undefined })
          await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
          tell(`Rolled back to version ${rollingTo}`, was && (() => void undo(was.version)))
        }}
      >
        <p>
          This creates a new version that equals the old one. Existing tasks keep the version they were created with.
        </p>
      </ConfirmDialog>
    </div>
  )
}

type Compared = Pick<AgentVersion, 'name' | 'description' | 'config'> & { version: number | undefined }

/** What differs between a version and another one, or the agent as it is now: instructions line by line, the rest by member. */
function VersionDiff({
  old,
  other,
  choices,
  against,
  compareWith,
}: {
  old: AgentVersion
  other: Compared | undefined
  choices: readonly number[]
  against: number | undefined
  compareWith: (version: number | undefined) => void
}) {
  if (!other) return <Skeleton rows={3} />
  const to = other.version === undefined ? 'now' : `version ${other.version}`
  const rest = ({ name, description, config: { system_prompt: _, ...config } }: Compared | AgentVersion) => ({
    name,
    description,
    config,
  })
  const [before, after] = [old.config.system_prompt ?? '', other.config.system_prompt ?? '']
  return (
    <div className="space-y-3 px-4 pb-4">
      <p className="flex flex-wrap items-center gap-2 text-sm">
        From version {old.version} to
        <FilterSelect
          label="Compared with"
          value={against === undefined ? '' : String(against)}
          onChange={({ target }) => compareWith(target.value === '' ? undefined : Number(target.value))}
        >
          <option value="">now</option>
          {choices.map((one) => (
            <option key={one} value={String(one)}>
              version {one}
            </option>
          ))}
        </FilterSelect>
      </p>
      {before !== after && (
        <div>
          <h3 className="mb-1 text-sm font-medium">Instructions</h3>
          <TextDiff label={`Instructions from version ${old.version} to ${to}`} before={before} after={after} />
        </div>
      )}
      {(before === after || JSON.stringify(rest(old)) !== JSON.stringify(rest(other))) && (
        <DiffTable label={`From version ${old.version} to ${to}`} before={rest(old)} after={rest(other)} />
      )}
    </div>
  )
}

function VersionLine({
  version,
  agent_id,
  isOpen,
  toggle,
  rollBack,
}: {
  version: AgentVersion
  agent_id: string
  isOpen: boolean
  toggle: () => void
  rollBack: () => void
}) {
  const mayNot = useDisabledReason('agents')
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
      <span className="font-medium">Version {version.version}</span>
      {version.version === 0 && <Badge>original</Badge>}
      {version.current && <Badge tone="good">current</Badge>}
      <span className="text-sm text-soft">
        <Time at={version.created_at} /> by <Maker of={agent_id} version={version} />
      </span>
      <span className="flex-1" />
      <Button
        kind="ghost"
        aria-label={`Differences of version ${version.version}`}
        aria-expanded={isOpen}
        onClick={toggle}
      >
        Differences
      </Button>
      <Button
        aria-label={`Roll back to version ${version.version}`}
        reason={mayNot ?? (version.current ? 'This is the current version' : undefined)}
        onClick={rollBack}
      >
        Roll back
      </Button>
    </div>
  )
}
