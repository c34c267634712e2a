# make help lists the targets. Each target installs the Debian packages that it needs (Scripts/setup).

PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
KEEP ?=
# The Debian packages set it to nothing, because dh_strip strips the programs.
STRIP ?= -s
version = $(shell sed -n 's/^package let version = "\(.*\)"/\1/p' Sources/PluginAPI/Version.swift)

bindir = $(PREFIX)/bin
datadir = $(PREFIX)/share
mandir = $(datadir)/man
unitdir = $(PREFIX)/lib/systemd
docdir = $(datadir)/doc/sessiond
sysusersdir = $(PREFIX)/lib/sysusers.d
# dbus-daemon reads policies under /usr/share and /etc. Under /usr/share, it ignores other prefixes such as /usr/local.
policydir = $(if $(filter /usr,$(PREFIX)),$(datadir),$(SYSCONFDIR))/dbus-1/system.d

programs = sessiond sessionctl $(patsubst Sources/Programs/%/main.swift,%,$(wildcard Sources/Programs/*/main.swift))
# The names of the plugins, as in their manifests.
plugins = $(shell sed -n 's/^Exec=\([^ ]*\).*/\1/p' data/plugins/*.plugin)
# The plugins whose program is sessiond-plugin: it is installed under each of these names. sessiond-cache is sessiond-transfer.
links = $(filter-out $(programs) sessiond-cache,$(plugins))
# docs/adr/0002-footprint.md tells how much the linker flags save.
release = swift build --configuration release --static-swift-stdlib -Xswiftc -Osize -Xswiftc -use-ld=lld \
	-Xlinker --no-export-dynamic -Xlinker --icf=safe -Xlinker -z -Xlinker pack-relative-relocs
products = .build/release
installed = $(DESTDIR)$(bindir)

.PHONY: help run demo-films test build release bench check check-long book api format install uninstall deb release-assets clean
.DEFAULT_GOAL := help

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' Makefile

run: ## build and run the demonstration with real sound; KEEP=1 keeps it running
	@Scripts/setup build run
	@Scripts/build sessiond sessionctl sessiond-plugin sessiond-demo
	@KEEP='$(KEEP)' Scripts/demo

demo-films: ## a film is exported, uploaded over five cuts, downloaded and compared
	@Scripts/setup build run test
	@swift build
	@Scripts/demo-films

test: ## run all tests, on private servers
	@Scripts/setup
	@Scripts/check tests

build: ## build everything for debugging
	@Scripts/setup build
	swift build

release: ## build optimized, with the Swift library linked statically
	@Scripts/setup build
	for program in $(programs); do $(release) --product $$program || exit 1; done
	@for plugin in $(links); do ln -f $(products)/sessiond-plugin $(products)/$$plugin || exit 1; done
	@ln -f $(products)/sessiond-assets $(products)/sessiond-thumbnailer
	@ln -f $(products)/sessiond-transfer $(products)/sessiond-cache

bench: ## run the benchmarks; IDLE=60 watches the idle daemon for a minute
	@Scripts/setup build
	@for program in $(programs) sessiond-benchmark; do $(release) --product $$program || exit 1; done
	@for plugin in $(links); do ln -f $(products)/sessiond-plugin $(products)/$$plugin || exit 1; done
	@ln -f $(products)/sessiond-assets $(products)/sessiond-thumbnailer
	@Benchmarks/run
	@Scripts/setup test
	@Benchmarks/player
	@Benchmarks/recorder
	@Benchmarks/unplug
	@Benchmarks/foreign
	@Benchmarks/assets
	@Benchmarks/movie

check: ## run all checks that a change must pass
	@Scripts/setup
	@Scripts/check

book: ## build README, docs, manual pages and D-Bus reference as HTML in .build/book/html
	@Scripts/setup book
	@Scripts/book

api: ## build the documentation of SessionKit as HTML in .build/api
	@Scripts/setup build
	@swift build --target SessionKit
	@Scripts/api

check-long: check ## run also the long checks: packages on bare Debian systems, random faults, cameras, damaged films
	@Scripts/setup deb
	@Scripts/deb
	@Scripts/check packages dependent wyoming tus whip rust faults-day cameras films

format: ## format the sources
	swift format format --in-place --recursive --parallel Package.swift Sources Tests Fuzz

# It builds nothing: it usually runs as root, and root should not build.
install: ## install what make release built; PREFIX, SYSCONFDIR, DESTDIR
	@for program in $(programs); do \
		test -x $(products)/$$program || { echo "$(products)/$$program is not there: make release first" >&2; exit 1; }; \
	done
	install -d $(installed)
	install $(STRIP) -m 755 $(addprefix $(products)/,$(filter-out sessiond-plugin,$(programs))) $(installed)
	@# Hard links: the kernel resolves a symbolic link, so settings could not distinguish the plugins by their paths.
	install $(STRIP) -m 755 $(products)/sessiond-plugin $(installed)/$(firstword $(links))
	for plugin in $(wordlist 2,$(words $(links)),$(links)); do \
		ln -f $(installed)/$(firstword $(links)) $(installed)/$$plugin || exit 1; \
	done
	ln -f $(installed)/sessiond-assets $(installed)/sessiond-thumbnailer
	ln -f $(installed)/sessiond-transfer $(installed)/sessiond-cache
	install -d $(DESTDIR)$(datadir)/thumbnailers
	install -m 644 data/thumbnailers/sessiond.thumbnailer $(DESTDIR)$(datadir)/thumbnailers
	install -d $(DESTDIR)$(datadir)/sessiond/plugins
	install -m 644 data/plugins/*.plugin $(DESTDIR)$(datadir)/sessiond/plugins
	install -d $(DESTDIR)$(datadir)/dbus-1/interfaces
	install -m 644 data/dbus/*.xml $(DESTDIR)$(datadir)/dbus-1/interfaces
	install -d $(DESTDIR)$(datadir)/sessiond/schema
	install -m 644 data/schema/*.json $(DESTDIR)$(datadir)/sessiond/schema
	$(call fill,data/pkgconfig/sessiond.pc,$(datadir)/pkgconfig)
	install -d $(DESTDIR)$(policydir)
	install -m 644 data/dbus-1/system.d/org.sessiond1.conf $(DESTDIR)$(policydir)
	install -d $(DESTDIR)$(sysusersdir)
	install -m 644 data/sysusers.d/sessiond.conf $(DESTDIR)$(sysusersdir)
	$(call fill,data/dbus-1/services/org.sessiond1.service,$(datadir)/dbus-1/services)
	$(call fill,data/dbus-1/system-services/org.sessiond1.service,$(datadir)/dbus-1/system-services)
	$(call fill,data/applications/sessiond-player.desktop,$(datadir)/applications)
	$(call fill,data/applications/sessiond-movie.desktop,$(datadir)/applications)
	$(call fill,data/systemd/user/sessiond.service,$(unitdir)/user)
	$(call fill,data/systemd/system/sessiond.service,$(unitdir)/system)
	install -m 644 data/systemd/user/sessiond-uploads.service $(DESTDIR)$(unitdir)/user
	install -m 644 data/systemd/system/sessiond-pulseaudio.service $(DESTDIR)$(unitdir)/system
	install -d $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 $(DESTDIR)$(mandir)/man8
	install -m 644 man/*.1 $(DESTDIR)$(mandir)/man1
	install -m 644 man/*.5 $(DESTDIR)$(mandir)/man5
	install -m 644 man/*.8 $(DESTDIR)$(mandir)/man8
	$(call completion,bash,bash-completion/completions,sessionctl)
	$(call completion,zsh,zsh/site-functions,_sessionctl)
	$(call completion,fish,fish/vendor_completions.d,sessionctl.fish)
	install -d $(DESTDIR)$(docdir)
	install -m 644 LICENSE data/sessiond.conf $(DESTDIR)$(docdir)
	$(call document,README.md CHANGELOG.md)
	$(call document,$(shell find docs -name book -prune -o -type f -print))
	$(call document,$(shell find Examples \( -name target -o -name __pycache__ \) -prune -o -type f -print))
	install -d $(DESTDIR)$(SYSCONFDIR)/sessiond/sessiond.conf.d
	@# An existing configuration file is kept; the new defaults are installed with the documentation.
	test -e $(DESTDIR)$(SYSCONFDIR)/sessiond/sessiond.conf \
		|| install -m 644 data/sessiond.conf $(DESTDIR)$(SYSCONFDIR)/sessiond

# $(call fill,template without .in,folder): replaces the placeholders of the template and installs it in the folder.
define fill
install -d $(DESTDIR)$(2)
sed 's|@bindir@|$(bindir)|g; s|@prefix@|$(PREFIX)|g; s|@version@|$(version)|g' $(1).in >$(DESTDIR)$(2)/$(notdir $(1))
chmod 644 $(DESTDIR)$(2)/$(notdir $(1))
endef

# $(call document,files): installs documentation in the same folders, but with Examples as examples, which is usual there.
define document
@for file in $(1); do \
	target=$(DESTDIR)$(docdir)/$$(echo $$file | sed 's|^Examples/|examples/|'); \
	mode=644; test ! -x $$file || mode=755; \
	install -D -m $$mode $$file $$target || exit 1; \
	case $$file in *.md) sed -i 's|\bExamples/|examples/|g' $$target ;; esac || exit 1; \
done
endef

# $(call completion,shell,folder,file): installs the completion that sessionctl writes. Removes its first line (#!),
# because a completion is not a program.
define completion
install -d $(DESTDIR)$(datadir)/$(2)
$(products)/sessionctl --generate-completion-script $(1) >$(DESTDIR)$(datadir)/$(2)/$(3)
sed -i '1{/^#!/d;}' $(DESTDIR)$(datadir)/$(2)/$(3)
chmod 644 $(DESTDIR)$(datadir)/$(2)/$(3)
endef

uninstall: ## remove what install installed; changed settings are kept
	rm -f $(addprefix $(installed)/,sessiond sessionctl sessiond-thumbnailer $(plugins))
	rm -f $(DESTDIR)$(datadir)/thumbnailers/sessiond.thumbnailer
	rm -f $(addprefix $(DESTDIR)$(datadir)/sessiond/plugins/,$(notdir $(wildcard data/plugins/*.plugin)))
	rm -f $(addprefix $(DESTDIR)$(datadir)/dbus-1/interfaces/,$(notdir $(wildcard data/dbus/*.xml)))
	rm -f $(addprefix $(DESTDIR)$(datadir)/sessiond/schema/,$(notdir $(wildcard data/schema/*.json)))
	rm -f $(DESTDIR)$(datadir)/pkgconfig/sessiond.pc
	rm -f $(DESTDIR)$(policydir)/org.sessiond1.conf $(DESTDIR)$(sysusersdir)/sessiond.conf
	rm -f $(DESTDIR)$(datadir)/dbus-1/services/org.sessiond1.service
	rm -f $(DESTDIR)$(datadir)/dbus-1/system-services/org.sessiond1.service
	rm -f $(addprefix $(DESTDIR)$(datadir)/applications/,sessiond-player.desktop sessiond-movie.desktop)
	rm -f $(addprefix $(DESTDIR)$(unitdir)/user/,sessiond.service sessiond-uploads.service)
	rm -f $(addprefix $(DESTDIR)$(unitdir)/system/,sessiond.service sessiond-pulseaudio.service)
	rm -f $(foreach page,$(notdir $(wildcard man/*.[158])),$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(page)))/$(page))
	rm -f $(DESTDIR)$(datadir)/bash-completion/completions/sessionctl
	rm -f $(DESTDIR)$(datadir)/zsh/site-functions/_sessionctl
	rm -f $(DESTDIR)$(datadir)/fish/vendor_completions.d/sessionctl.fish
	rm -f $(addprefix $(DESTDIR)$(docdir)/,LICENSE sessiond.conf README.md CHANGELOG.md)
	rm -rf $(DESTDIR)$(docdir)/docs $(DESTDIR)$(docdir)/examples
	cmp -s data/sessiond.conf $(DESTDIR)$(SYSCONFDIR)/sessiond/sessiond.conf \
		&& rm -f $(DESTDIR)$(SYSCONFDIR)/sessiond/sessiond.conf || true
	-rmdir --ignore-fail-on-non-empty $(wildcard $(DESTDIR)$(SYSCONFDIR)/sessiond/sessiond.conf.d) \
		$(wildcard $(DESTDIR)$(SYSCONFDIR)/sessiond) $(wildcard $(DESTDIR)$(datadir)/sessiond/plugins) \
		$(wildcard $(DESTDIR)$(datadir)/sessiond/schema) \
		$(wildcard $(DESTDIR)$(datadir)/sessiond) $(wildcard $(DESTDIR)$(docdir)) 2>/dev/null

deb: ## build Debian packages of the release in .build/deb
	@Scripts/setup build deb
	Scripts/deb

release-assets: ## build in .build/dist what a release page offers: packages, sources, programs, SHA256SUMS
	@Scripts/setup build deb
	Scripts/release-assets

clean: ## remove everything that was built
	swift package clean
	rm -rf .build/check
