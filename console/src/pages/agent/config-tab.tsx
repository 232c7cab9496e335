import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { AgentVersion } from '#sdk/types.ts'
import { DiffTable } from '../../agents/diff-table.tsx'
import { withoutValues } from '../../agents/variables.ts'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import type { TabProps } from './tab.ts'

const pageSize = 20

/** What it is made of, what that was in each version, and the way back. */
export function ConfigTab({ project_id, agent }: TabProps) {
  const [search, change] = useSearchState<{ version?: number | string; offset?: number | string }>()
  const queries = useQueryClient()
  const [rollingTo, rollTo] = useState<number>()
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
  return (
    <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-2">
      <Panel title="Now" actions={<ButtonLink {...paths.editAgent(project_id, agent.id)}>Edit</ButtonLink>}>
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
                isOpen={open === version.version}
                toggle={() => change({ version: open === version.version ? undefined : version.version })}
                rollBack={() => rollTo(version.version)}
              />
              {open === version.version && old.data && (
                <div className="px-4 pb-4">
                  <DiffTable
                    label={`From version ${version.version} to now`}
                    before={{ name: old.data.name, description: old.data.description, config: old.data.config }}
                    after={{ name: agent.name, description: agent.description, config: agent.config }}
                  />
                </div>
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
          await api.agents.rollback(project_id, agent.id, { version: rollingTo ?? 0 })
          change({ version: undefined })
          await queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
          tell(`Rolled back to version ${rollingTo}`)
        }}
      >
        <p>
          A new version is made that equals the old one. Tasks that exist already keep the version that they were
          created with.
        </p>
      </ConfirmDialog>
    </div>
  )
}

function VersionLine({
  version,
  isOpen,
  toggle,
  rollBack,
}: {
  version: AgentVersion
  isOpen: boolean
  toggle: () => void
  rollBack: () => void
}) {
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
      <span className="font-medium">Version {version.version}</span>
      {version.current && <Badge tone="good">now</Badge>}
      <span className="text-sm text-soft">
        <Time at={version.created_at} />
      </span>
      <span className="flex-1" />
      <Button kind="ghost" aria-expanded={isOpen} onClick={toggle}>
        Differences
      </Button>
      <Button reason={version.current ? 'The agent is this version' : undefined} onClick={rollBack}>
        Roll back
      </Button>
    </div>
  )
}
