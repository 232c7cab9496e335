import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { engineRooms } from './import-rules.ts'

/** For each rule a file that breaks it, and what it imports; `exists` are the imported files. */
export const planted: Record<string, { file: string; imports: string }> = {
  'no-cycle': { file: 'server/src/engine/queue/one.ts', imports: './two.ts' },
  resolvable: { file: 'server/src/engine/queue/lost.ts', imports: './nowhere.ts' },
  'contract-alone': { file: 'contract/src/files.ts', imports: 'node:fs' },
  'platform-alone': { file: 'server/src/platform/clock.ts', imports: '../engine/queue/queue.ts' },
  'resources-are-handed-in': { file: 'server/src/http/guess.ts', imports: '../resources/agents/agents.queries.ts' },
  'middle-parts-apart': { file: 'server/src/events/loop.ts', imports: '../engine/queue/queue.ts' },
  'events-below-http': { file: 'server/src/http/tell.ts', imports: '../events/outbox.ts' },
  'slices-by-queries': { file: 'server/src/resources/tasks/tasks.queries.ts', imports: '../agents/agents.rules.ts' },
  'protocols-from-app': { file: 'server/src/service.ts', imports: './protocols/openai/routes.ts' },
  'routes-from-app': { file: 'server/src/commands/run-command.ts', imports: '../resources/agents/agents.routes.ts' },
  'top-of-the-tree': { file: 'server/src/engine/start.ts', imports: '../app.ts' },
  'sdk-on-contract': { file: 'sdk/src/disk.ts', imports: 'node:fs' },
  'sdk-carries-no-schemas': { file: 'sdk/src/heavy.ts', imports: '../../contract/src/resources/agents.ts' },
  'clients-by-sdk': { file: 'cli/src/shortcut.ts', imports: '../../server/src/app.ts' },
  'clients-apart': { file: 'console/src/borrow.tsx', imports: '../../cli/src/output/output.ts' },
  'server-from-outside': { file: 'contract/src/reach.ts', imports: '../../server/src/app.ts' },
  'no-test-code-in-use': { file: 'server/src/engine/queue/fake.ts', imports: '../../../test/harness.ts' },
  ...Object.fromEntries(
    Object.keys(engineRooms).map((room) => [
      `engine-${room}`,
      { file: `server/src/engine/${room}/upward.ts`, imports: '../start.ts' },
    ]),
  ),
  'engine-task-at-the-bottom': { file: 'server/src/engine/task.ts', imports: './queue/queue.ts' },
  'engine-rooms-are-listed': { file: 'server/src/engine/attic/box.ts', imports: '../task.ts' },
  'no-development-packages-in-use': { file: 'server/src/engine/queue/rng.ts', imports: 'a-development-package' },
}

/** What the planted files import, and some imports that are allowed and must not be complained about. */
export const innocent: Record<string, string[]> = {
  'contract/src/resources/agents.ts': [],
  'sdk/src/client.ts': [],
  'cli/src/output/output.ts': ['../../../sdk/src/client.ts', '../../../contract/src/resources/agents.ts', 'node:fs'],
  'console/src/page.tsx': ['../../sdk/src/client.ts', '../../contract/src/resources/agents.ts'],
  'server/src/platform/postgres/database.ts': [],
  'server/src/events/outbox.ts': ['../platform/postgres/database.ts', '#contract/resources/agents.ts'],
  'server/src/engine/queue/queue.ts': ['../../events/outbox.ts', '../../platform/postgres/database.ts', 'node:timers'],
  'server/src/engine/queue/two.ts': ['./one.ts'],
  'server/src/resources/agents/agents.rules.ts': [],
  'server/src/resources/agents/agents.queries.ts': ['../../platform/postgres/database.ts', './agents.rules.ts'],
  'server/src/resources/agents/agents.routes.ts': ['../projects/projects.queries.ts', '../../engine/queue/queue.ts'],
  'server/src/resources/projects/projects.queries.ts': ['../../platform/postgres/database.ts'],
  'server/src/protocols/openai/routes.ts': [],
  'server/src/app.ts': ['./resources/agents/agents.routes.ts', './protocols/openai/routes.ts'],
  'server/test/harness.ts': ['../src/app.ts'],
  'tools/gen.ts': ['../server/src/platform/postgres/database.ts', 'a-development-package'],
}

/** Writes a small repository that breaks every rule once into the folder `root`. */
export async function plant(root: string): Promise<void> {
  const files = { ...innocent }
  for (const { file, imports } of Object.values(planted)) files[file] = [...(files[file] ?? []), imports]
  const texts = Object.entries(files).map(([file, imports]) => [
    file,
    imports.map((name) => `import '${name}'\n`).join(''),
  ])
  const dependency = 'a-development-package'
  texts.push(
    [
      'package.json',
      JSON.stringify({
        type: 'module',
        imports: { '#contract/*': './contract/src/*' },
        devDependencies: { [dependency]: '1.0.0' },
      }),
    ],
    [
      `node_modules/${dependency}/package.json`,
      JSON.stringify({ name: dependency, version: '1.0.0', main: 'index.js' }),
    ],
    [`node_modules/${dependency}/index.js`, ''],
  )
  for (const [file, text] of texts) {
    const path = join(root, file ?? '')
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text ?? '')
  }
}
