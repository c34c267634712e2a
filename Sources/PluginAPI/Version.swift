/// The version of all programs of this package.
package let version = "0.1.0"
