import { axisTime, exactTime, zoneName } from '../../format.ts'
import { usePreference } from '../../preferences.ts'

/** What a chart draws, as a table: a row for each moment, the newest first, and a column for each row of values. */
export function ChartTable({
  title,
  times,
  columns,
  format,
  height_px,
}: {
  title: string
  /** Seconds since 1970, rising. */
  times: readonly number[]
  columns: readonly { label: string; values: readonly (number | null)[] }[]
  format: (value: number) => string
  height_px: number
}) {
  const [zone] = usePreference('time_zone')
  const isDaily = times.length > 1 && times[1]! - times[0]! >= 86_400
  return (
    <div
      className="overflow-auto rounded"
      style={{ height: height_px }}
      tabIndex={0}
      role="region"
      aria-label={`${title}: a table`}
    >
      <table className="w-full text-sm tabular-nums" aria-label={title}>
        <thead className="sticky top-0 bg-panel text-soft">
          <tr>
            <th scope="col" className="py-1 pr-3 text-left font-medium">
              Time ({zoneName(zone)})
            </th>
            {columns.map(({ label }) => (
              <th key={label} scope="col" className="py-1 pl-3 text-right font-medium">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times
            .map((at, index) => (
              <tr key={at} className="border-t border-line">
                <th
                  scope="row"
                  title={exactTime(at * 1000, zone)}
                  className="py-1 pr-3 text-left font-normal whitespace-nowrap"
                >
                  {axisTime(at * 1000, zone, isDaily ? 'date' : 'minute')}
                </th>
                {columns.map(({ label, values }) => (
                  <td key={label} className="py-1 pl-3 text-right">
                    {values[index] == null ? (
                      <span className="text-soft">–</span>
                    ) : (
                      format(values[index]) || values[index]
                    )}
                  </td>
                ))}
              </tr>
            ))
            .toReversed()}
        </tbody>
      </table>
    </div>
  )
}
