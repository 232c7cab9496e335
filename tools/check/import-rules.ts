import type { ICruiseOptions, IForbiddenRuleType } from 'dependency-cruiser'

/**
 * Which way dependencies point (ARCHITECTURE.md). Paths are those of the repository. `check-boundaries.ts` holds them:
 * it proves that files were read, and that a planted breach of each rule is found.
 */
export const importRules: (IForbiddenRuleType & { name: string; comment: string })[] = [
  {
    name: 'no-cycle',
    comment: 'Two files that need each other, even only for a type, cannot be read in an order. Move the type down.',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'resolvable',
    comment: 'Imports name a file that exists, with its extension, or a package of package.json.',
    severity: 'error',
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: 'contract-alone',
    comment: 'The contract is data, without IO: itself and the schema library only.',
    severity: 'error',
    from: { path: '^contract/src/', pathNot: '[.]test[.]ts$' },
    to: { pathNot: ['^contract/src/', '^node_modules/typebox/'] },
  },
  {
    name: 'platform-alone',
    comment: 'The platform is what any service would need: of Cadre it imports only the contract.',
    severity: 'error',
    from: { path: '^server/src/platform/', pathNot: '[.]test[.]ts$' },
    to: { path: '^(server|sdk|cli|console|e2e|bench|tools)/', pathNot: '^server/src/platform/' },
  },
  {
    name: 'resources-are-handed-in',
    comment: 'http, engine and events never import a resource; app.ts and main.ts hand them what they need.',
    severity: 'error',
    from: { path: '^server/src/(http|engine|events|platform)/', pathNot: '[.]test[.]ts$' },
    to: { path: '^server/src/resources/' },
  },
  {
    name: 'middle-parts-apart',
    comment:
      'http, engine and events stand side by side; only the engine may tell events what happened. None knows the top.',
    severity: 'error',
    from: { path: '^server/src/(http|engine|events)/', pathNot: '[.]test[.]ts$' },
    to: {
      path: '^server/src/((http|engine|events|metrics|config|maintenance)/|[^/]+[.]ts$)',
      pathNot: ['^server/src/$1/', '^server/src/events/'],
    },
  },
  {
    name: 'events-below-http',
    comment: 'http does not know what happened to resources, so it does not import events.',
    severity: 'error',
    from: { path: '^server/src/http/', pathNot: '[.]test[.]ts$' },
    to: { path: '^server/src/events/' },
  },
  {
    name: 'slices-by-queries',
    comment: "A slice calls another slice's queries, never its routes or anything else.",
    severity: 'error',
    from: { path: '^server/src/resources/([^/]+)/' },
    to: { path: '^server/src/resources/', pathNot: ['^server/src/resources/$1/', '[.]queries[.]ts$'] },
  },
  {
    name: 'routes-from-app',
    comment: 'Routes are registered by app.ts, by name, and imported only by their own slice otherwise.',
    severity: 'error',
    from: { pathNot: ['^server/src/app[.]ts$', '^server/src/resources/', '[.]test[.]ts$'] },
    to: { path: '^server/src/resources/.+[.]routes[.]ts$' },
  },
  {
    name: 'protocols-from-app',
    comment: 'Doors are registered by app.ts; of the rest only maintenance reads their tables.',
    severity: 'error',
    from: { pathNot: ['^server/src/app[.]ts$', '^server/src/protocols/', '[.]test[.]ts$'] },
    to: { path: '^server/src/protocols/', pathNot: '[.]queries[.]ts$' },
  },
  {
    name: 'top-of-the-tree',
    comment: 'Commands, service.ts and app.ts put the parts together, so no part imports them.',
    severity: 'error',
    from: { path: '^server/src/', pathNot: ['[.]test[.]ts$', '^server/src/(commands/|(main|service)[.]ts$)'] },
    to: { path: '^server/src/(commands/|(main|service|app)[.]ts$)', dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'sdk-on-contract',
    comment: 'The SDK is for any program and browser: itself and the contract only, and no package or module of Node.',
    severity: 'error',
    from: { path: '^sdk/src/', pathNot: '[.]test[.]ts$' },
    to: { pathNot: ['^sdk/src/', '^contract/src/', '^node_modules/typebox/'] },
  },
  {
    name: 'sdk-carries-no-schemas',
    comment: 'Schemas would be most of its size in a browser: of the contract and its library it takes types alone.',
    severity: 'error',
    from: { path: '^sdk/src/', pathNot: '[.]test[.]ts$' },
    to: { path: '^(contract|node_modules/typebox)/', dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'clients-by-sdk',
    comment: 'Command line and console speak the public API, through the SDK; of the contract they take data.',
    severity: 'error',
    from: { path: '^(cli|console)/', pathNot: ['[.]test[.]tsx?$', '^(cli|console)/test/'] },
    to: { path: '^(server|e2e|bench|tools)/' },
  },
  {
    name: 'clients-apart',
    comment: 'Command line and console do not import each other, and nothing below imports them.',
    severity: 'error',
    from: { path: '^(contract|server/src|sdk|cli|console)/', pathNot: '[.]test[.]tsx?$' },
    to: { path: '^(cli|console)/', pathNot: '^$1/' },
  },
  {
    name: 'server-from-outside',
    comment: "Only the repository's own scripts and the tests of the whole read the server's insides.",
    severity: 'error',
    from: { pathNot: '^(server|e2e|bench|tools)/|^cadre[.]mjs$|^(sdk|cli|console)/(.+[.]test[.]tsx?$|test/)' },
    to: { path: '^server/' },
  },
  {
    name: 'no-test-code-in-use',
    comment: 'What runs in production imports no test, no test harness and none of the repository’s scripts.',
    severity: 'error',
    from: { path: '^(contract|server|sdk|cli|console)/src/', pathNot: '[.]test[.]tsx?$' },
    to: { path: '[.]test[.]tsx?$|^(server|sdk|cli|console)/test/|^(e2e|bench|tools)/' },
  },
  {
    name: 'no-development-packages-in-use',
    comment: 'A package that production needs stands in "dependencies".',
    severity: 'error',
    from: { path: '^(contract|server|cli)/src/', pathNot: '[.]test[.]ts$' },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only', 'npm'] },
  },
]

/**
 * The rooms of the engine from the top down, each with the rooms that it may import beside itself. `task.ts`, which holds
 * the types that all of them share, is below them all; `engine.ts` and `start.ts` are above and import any.
 */
export const engineRooms = {
  remote: ['maintenance', 'dispatch', 'run', 'journal', 'budgets', 'conversation', 'tools', 'models', 'queue'],
  maintenance: ['commands', 'dispatch', 'run', 'journal', 'queue'],
  commands: ['run', 'journal', 'conversation', 'tools', 'queue', 'files'],
  dispatch: ['run', 'journal', 'budgets', 'queue'],
  run: ['journal', 'budgets', 'conversation', 'tools', 'credentials', 'models', 'queue', 'files'],
  journal: ['budgets', 'conversation', 'models', 'queue'],
  budgets: [],
  conversation: ['models'],
  tools: ['credentials', 'files'],
  credentials: [],
  models: [],
  queue: [],
  files: [],
} as const satisfies Record<string, readonly string[]>

for (const [room, below] of Object.entries(engineRooms))
  importRules.push({
    name: `engine-${room}`,
    comment: `Of the engine, ${room} imports ${[...below, 'task.ts'].join(', ')} and itself.`,
    severity: 'error',
    from: { path: `^server/src/engine/${room}/`, pathNot: '[.]test[.]ts$' },
    to: {
      path: '^server/src/engine/',
      pathNot: ['^server/src/engine/task[.]ts$', `^server/src/engine/(${[room, ...below].join('|')})/`],
    },
  })

importRules.push(
  {
    name: 'engine-task-at-the-bottom',
    comment: 'task.ts holds the types that the rooms of the engine share, and imports none of them.',
    severity: 'error',
    from: { path: '^server/src/engine/task[.]ts$' },
    to: { path: '^server/src/engine/' },
  },
  {
    name: 'engine-rooms-are-listed',
    comment: 'A file of the engine stands in a room that engineRooms lists, beside start.ts, engine.ts and task.ts.',
    severity: 'error',
    from: {
      path: '^server/src/engine/',
      pathNot: [
        '[.]test[.]ts$',
        '^server/src/engine/(start|engine|task)[.]ts$',
        `^server/src/engine/(${Object.keys(engineRooms).join('|')})/`,
      ],
    },
    to: {},
  },
)

/** How files are read. */
export const readingOptions: ICruiseOptions = {
  // TypeScript 7 has no parser that dependency-cruiser could use: without swc it would read nothing.
  parser: 'swc',
  doNotFollow: { path: ['^node_modules/', '/node_modules/'] },
  // Build output is no source.
  exclude: { path: '^console/[.]build-|^(console|sdk)/dist/' },
  enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
}
