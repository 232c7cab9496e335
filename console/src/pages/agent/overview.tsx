import { Facts, Panel } from '../../ui/page.tsx'
import { formatCount, formatDuration, formatShare } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import type { TabProps } from './tab.ts'

/** What it is and how it does. */
export function Overview({ agent }: TabProps) {
  const { stats, config, metadata } = agent
  const counted = stats.completed_tasks + stats.failed_tasks
  return (
    <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
      <Panel title="Work">
        <div className="p-4">
          <Facts>
            <dt>Tasks</dt>
            <dd className="tabular-nums">{formatCount(stats.total_tasks)}</dd>
            <dt>Completed</dt>
            <dd className="tabular-nums">{formatCount(stats.completed_tasks)}</dd>
            <dt>Failed</dt>
            <dd className="tabular-nums">{formatCount(stats.failed_tasks)}</dd>
            <dt>Success rate</dt>
            <dd className="tabular-nums">{counted === 0 ? '–' : formatShare(stats.success_rate)}</dd>
            <dt>Average time</dt>
            <dd className="tabular-nums">{counted === 0 ? '–' : formatDuration(stats.avg_response_time * 1000)}</dd>
            <dt>Last activity</dt>
            <dd>
              <Time at={agent.last_activity} />
            </dd>
          </Facts>
        </div>
      </Panel>
      <Panel title="What it is">
        <div className="p-4">
          <Facts>
            <dt>Model</dt>
            <dd>
              <code>{config.model}</code>
            </dd>
            {config.fallback_models && config.fallback_models.length > 0 && (
              <>
                <dt>Falls back to</dt>
                <dd>
                  <code>{config.fallback_models.join(', ')}</code>
                </dd>
              </>
            )}
            <dt>Tools</dt>
            <dd>{config.tools && config.tools.length > 0 ? <code>{config.tools.join(', ')}</code> : 'none'}</dd>
            <dt>Version</dt>
            <dd>{typeof metadata.version === 'string' ? metadata.version : '–'}</dd>
            <dt>Created</dt>
            <dd>
              <Time at={agent.created_at} form="exact" />
            </dd>
            <dt>Changed</dt>
            <dd>
              <Time at={agent.updated_at} form="exact" />
            </dd>
          </Facts>
        </div>
      </Panel>
      <Panel title="Instructions" className="lg:col-span-2">
        <p className="max-h-80 overflow-y-auto p-4 break-words whitespace-pre-wrap" tabIndex={0}>
          {config.system_prompt ?? <span className="text-soft">None: the model gets the input alone.</span>}
        </p>
      </Panel>
    </div>
  )
}
