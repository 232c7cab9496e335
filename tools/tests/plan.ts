import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const folders = ['contract', 'server', 'sdk', 'cli', 'console', 'tools', 'e2e']

/**
 * Files of one process at most. A process takes seconds of a processor until it has loaded and compiled the service and started one,
 * so files share that. The groups of a whole run are as many as the processes at a time: one begins after the browsers, and files with a
 * process each fill what is left.
 */
const filesOfGroup = 96

/** In a long run one file may take half a minute. */
const filesOfLongGroup = 10

/** Browser tests of a short run are few. Those of a long run take minutes, and wait for pages half of that. */
const filesOfBrowserGroup = 6

/** A file that changes its process, or starts processes that it measures, says so in a line like this. */
const ownProcess = /^\/\/ test: own process/m

/** Files of e2e/ whose service runs in their process, as that of most other files does. */
const inService = /^e2e\/(guides|conformance)\//

/** A file whose bounds are times says so in a line like this: nothing else runs beside it. */
const quietMachine = /^\/\/ test: quiet machine/m

/** A file whose tests do more in a long run imports this module, or the one of browser tests that does. */
const longForm = /\/long-run\.ts'|'\.\/console\.ts'/

/** Whether tests of a file use a browser. Such files share a browser, and so a process. */
export const inBrowser = (file: string): boolean => file.includes('.browser.')

/** The test files of a run by their paths in the repository, those of one process together. */
export interface TestPlan {
  /** Processes that run beside each other. */
  together: string[][]
  /** Processes that run after those, one at a time. */
  quiet: string[][]
}

/**
 * Which test files run in which process. A short run has every file but `*.long.test.ts`; a long run has these and the
 * files with a long form. Most files of e2e/ have a process each, and browser tests share some. `isSelected` narrows either.
 */
export async function planTests(
  root: string,
  isLong: boolean,
  isSelected: (file: string) => boolean,
): Promise<TestPlan> {
  const found = await Array.fromAsync(
    glob(
      folders.map((folder) => `${folder}/**/*.test.ts`),
      { cwd: root },
    ),
  )
  const files = await Promise.all(
    found
      .filter((file) => !file.includes('node_modules') && isSelected(file))
      .toSorted()
      .map(async (file) => ({ file, text: await readFile(join(root, file), 'utf8') })),
  )
  const ofRun = files.filter(({ file, text }) => {
    const isOnlyLong = file.endsWith('.long.test.ts')
    return isLong ? isOnlyLong || longForm.test(text) : !isOnlyLong
  })
  const quiet = ofRun.filter(({ text }) => quietMachine.test(text)).map(({ file }) => [file])
  const isAlone = ({ file, text }: { file: string; text: string }) =>
    (file.startsWith('e2e/') && !inService.test(file)) || ownProcess.test(text)
  const besideOthers = ofRun.filter(({ text }) => !quietMachine.test(text))
  const browser = besideOthers.map(({ file }) => file).filter(inBrowser)
  const beside = besideOthers.filter(({ file }) => !inBrowser(file))
  const alone = beside.filter(isAlone).map(({ file }) => [file])
  const shared = beside.filter((one) => !isAlone(one)).map(({ file }) => file)
  return {
    together: [
      ...deal(browser, filesOfBrowserGroup),
      ...deal(shared, isLong ? filesOfLongGroup : filesOfGroup),
      ...alone,
    ],
    quiet,
  }
}

/** Groups of at most `max` files, dealt like cards: files of one folder, which cost alike, are in different groups. */
function deal(files: readonly string[], max: number): string[][] {
  const groups = Math.ceil(files.length / max)
  return Array.from({ length: groups }, (_, nth) => files.filter((_file, at) => at % groups === nth))
}
