import { Cadre } from '../../sdk/src/index.ts'
import type { Work } from '../../sdk/src/index.ts'

/** A worker around an example of the guide, as a user has one: the example is the file `WORKER_EXAMPLE`. */
const { WORKER_EXAMPLE: example = '', WORKER_PROJECT: project_id = '', WORKER_QUEUE: queue = '' } = process.env
const { run } = (await import(example)) as { run: (work: Work) => Promise<string> }

await new Cadre().worker({
  ...{ project_id, queue, run },
  concurrency: 1,
  // Longer than a service takes to start again on a busy machine.
  lease_seconds: 600,
  onError: (error, work) => console.error(`${queue} ${work?.task.id ?? 'claim'}: ${String(error)}`),
})
