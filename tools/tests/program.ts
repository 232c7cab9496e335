import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleService, repository } from '../package/bundle.ts'

/** What the program reads beside its code, where the checkout has it: the manifest and the packages name the template of databases. */
const linked = ['package.json', 'node_modules', 'console/dist', 'server/migrations']

/**
 * Makes the service and the command line in `folder` as the package has them: compiled. A start of it takes half of the
 * processor time that one of the sources takes.
 */
export async function makeProgram(folder: string): Promise<void> {
  await bundleService(join(folder, 'dist/program'))
  await cp(join(repository, 'cadre.mjs'), join(folder, 'cadre.mjs'))
  for (const name of linked) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await symlink(join(repository, name), join(folder, name))
  }
  // The one of the package removes files of the Node that the checkout runs on.
  await mkdir(join(folder, 'tools/package'), { recursive: true })
  await writeFile(join(folder, 'tools/package/after-install.mjs'), '')
}
