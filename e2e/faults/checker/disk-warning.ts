import { startProcess } from '../../process.ts'
import { eventually, sender } from '../../../server/test/harness.ts'
import type { Run } from '../fault.ts'
import { makeSmallDisk } from '../nemesis/small-disk.ts'

const disk_bytes = 256 * 1024 * 1024
/** The service looks every ten seconds. */
const told_ms = 60_000
const api_key = 'cadre_00112233445566778899aabbccddeeff'

/** Fills the disk of a service with an embedded database step by step, and notes what it told before it refused a write, and after. */
export async function showWarning(run: Run): Promise<void> {
  const disk = await makeSmallDisk(disk_bytes)
  run.atEnd(disk.remove)
  const service = await startProcess({
    CADRE_DATA_DIR: disk.path,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS_SCALE: '1000',
    CADRE_METRICS_PORT: '0',
    CADRE_LOG_LEVEL: 'info',
  })
  run.atEnd(() => service.end())
  const metrics = /^ {2}Metrics +(\S+)/m.exec(service.output())![1]!
  const usedShare = async (): Promise<number> => {
    const page = await (await fetch(metrics)).text()
    const [size, free] = ['size', 'free'].map((what) =>
      Number(new RegExp(`^cadre_database_disk_${what}_bytes\\{disk="data"\\} (\\S+)`, 'm').exec(page)?.[1]),
    )
    return 1 - free! / size!
  }
  const send = sender(service.url, api_key)
  let count = 0
  const write = async (): Promise<number> =>
    (await send('POST', '/api/v1/projects', { body: { name: `filled-${++count}` } })).status
  const wrong: string[] = []
  const expectLog = async (level: string, when: string): Promise<void> => {
    const line = new RegExp(`^\\{"level":"${level}".*the disk of the database`, 'm')
    await eventually(async () => line.test(service.output()), told_ms).catch(() =>
      wrong.push(`no line of level ${level} ${when}`),
    )
  }
  const used: string[] = []
  for (const [share, level] of [
    [0.82, 'warn'],
    [0.92, 'error'],
  ] as const) {
    await disk.fillTo(share)
    await expectLog(level, `at ${share * 100} %`)
    const told = await usedShare()
    used.push(`${Math.round(told * 100)} %`)
    if (!(Math.abs(told - share) < 0.05)) wrong.push(`metrics tell ${told}, where ${share} is used`)
    const status = await write()
    if (status !== 201) wrong.push(`a write was answered ${status} at ${share * 100} %`)
  }
  await disk.fillTo()
  const refused = await eventually(async () => (await write()) === 503, told_ms).catch(() => false)
  if (!refused) wrong.push('no write was refused although the disk is full')
  await disk.free()
  await eventually(async () => (await write()) === 201, told_ms).catch(() =>
    wrong.push('no write after there was room'),
  )
  const ready = await fetch(`${service.url}/readyz`)
  if (!ready.ok) wrong.push(`/readyz answers ${ready.status} after there was room`)
  await expectLog('info', 'after there was room')
  run.holds(
    'R12',
    `log and metrics told of a disk that fills, at ${used.join(' and ')}, before a write was refused`,
    wrong,
  )
}
