import assert from 'node:assert/strict'
import { it } from 'node:test'
import { UsageMeter, type ProcessUse } from './usage-meter.ts'

const start: ProcessUse = { cpu_seconds: 0, memory_bytes: 100, cores: 2, memory_bytes_available: 1000, at: 0 }

it('resource use of the process is divided by the running time of tasks', () => {
  let use = start
  const meter = new UsageMeter(() => use)
  meter.begin('one', 0)
  meter.begin('other', 0)
  meter.begin('other', 0)
  meter.begin('other', 0)
  use = { ...start, cpu_seconds: 4, at: 10 }
  assert.deepEqual(meter.sample(), [
    {
      agent_id: 'one',
      consumed: {
        cpu_seconds: 1,
        memory_byte_seconds: 250,
        cpu_seconds_available: 20,
        memory_byte_seconds_available: 10_000,
      },
    },
    {
      agent_id: 'other',
      consumed: {
        cpu_seconds: 3,
        memory_byte_seconds: 750,
        cpu_seconds_available: 20,
        memory_byte_seconds_available: 10_000,
      },
    },
  ])
})

it('resource use while an agent had no task does not count for it', () => {
  let use = start
  const meter = new UsageMeter(() => use)
  meter.begin('one', 4)
  meter.end('one', 5)
  use = { ...start, cpu_seconds: 10, at: 10 }
  assert.deepEqual(meter.sample(), [
    {
      agent_id: 'one',
      consumed: {
        cpu_seconds: 1,
        memory_byte_seconds: 100,
        cpu_seconds_available: 2,
        memory_byte_seconds_available: 1000,
      },
    },
  ])
  use = { ...use, at: 20 }
  assert.deepEqual(meter.sample(), [], 'and it is forgotten afterwards')
})

it("an agent's share never exceeds the available resources", () => {
  let use = start
  const meter = new UsageMeter(() => use)
  meter.begin('one', 0)
  use = { ...start, cpu_seconds: 100, at: 1 }
  const [share] = meter.sample()
  assert.equal(share!.consumed.cpu_seconds, share!.consumed.cpu_seconds_available)
})
