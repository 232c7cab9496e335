// Starts the service (`npm start`): the same as the command `cadre serve`.
process.argv.splice(2, 0, 'serve')
await import('./cadre.mjs')
